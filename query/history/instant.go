package history

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// instant is a moment with all its digits (S-034).
type instant struct {
	ms   int64
	rest string // digits below a millisecond, without zeros at the end
}

func (a instant) before(b instant) bool {
	return a.ms < b.ms || a.ms == b.ms && a.rest < b.rest
}

// ceil is the first whole millisecond not before a.
func (a instant) ceil() int64 {
	if a.rest != "" {
		return a.ms + 1
	}
	return a.ms
}

var instantForm = regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|([+-])(\d{2}):(\d{2}))$`)

// parseInstant reads a timestamp with its zone (S-033). Form and value are told
// apart: a person mends them differently.
func parseInstant(s, name string) (instant, error) {
	m := instantForm.FindStringSubmatch(s)
	if m == nil {
		return instant{}, badFilter("%s must be a time like 2026-07-24T10:00:00Z or 2026-07-24T10:00:00.5+02:00, with its zone", name)
	}
	number := func(i int) int { n, _ := strconv.Atoi(m[i]); return n }
	year, month, day := number(1), number(2), number(3)
	hour, minute, second, offHour, offMinute := number(4), number(5), number(6), number(10), number(11)
	at := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if at.Day() != day || at.Month() != time.Month(month) || hour > 23 || minute > 59 || second > 59 || offHour > 23 || offMinute > 59 {
		return instant{}, badFilter("%s names a day or a time of day that there is not", name)
	}
	offset := time.Duration(offHour)*time.Hour + time.Duration(offMinute)*time.Minute
	if m[9] == "-" {
		offset = -offset
	}
	digits := m[7] + strings.Repeat("0", max(0, 3-len(m[7])))
	ms, _ := strconv.ParseInt(digits[:3], 10, 64)
	return instant{ms: at.Add(-offset).UnixMilli() + ms, rest: strings.TrimRight(digits[3:], "0")}, nil
}

// iso is a time in milliseconds as results show it: UTC, with milliseconds.
func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
