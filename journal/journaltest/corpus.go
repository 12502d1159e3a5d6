package journaltest

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/sessionlog"
)

// Corpus is past work that never happened: sessions of agents in several
// workspaces and languages, children among them, with the lengths that real logs
// have. The same seed makes the same corpus.
type Corpus struct {
	r     *rand.Rand
	words map[string][]string // vocabulary by language, the most frequent first
	zipf  *rand.Zipf
}

// NewCorpus makes a generator.
func NewCorpus(seed uint64) *Corpus {
	r := rand.New(rand.NewPCG(seed, 0x70617374))
	c := &Corpus{r: r, words: map[string][]string{}, zipf: rand.NewZipf(r, 1.1, 6, vocabulary-1)}
	for _, language := range languages {
		if c.words[language] == nil {
			c.words[language] = c.vocabulary(language)
		}
	}
	return c
}

const vocabulary = 20_000

// languages, as often as they are spoken in a corpus.
var languages = []string{"en", "en", "en", "en", "de", "de", "zh", "zh", "ja", "ko"}

// frequent are the words that every text has, so that their lists of places are
// as long as they are in life.
var frequent = map[string]string{
	"en": "the to and of a in is that it for on with this as be not are I we file error test run code from use can will if at or by function line",
	"de": "die der und das ist in zu den nicht von mit ein eine auf für wird es im dem sich auch als an werden aus Datei Fehler Test wir bei über",
	"zh": "的 是 不 了 在 有 我 这 个 和 文件 错误 测试 可以 需要 代码 运行 函数 一个 没有 使用 搜索 数据 我们 如果 问题",
	"ja": "の は に を が と で た し て ファイル エラー テスト 実行 コード 関数 する です ます から こと ある 確認 検索 データ",
	"ko": "이 그 것 수 를 을 에 는 은 가 파일 오류 테스트 코드 실행 함수 있는 하는 합니다 에서 검색 데이터",
}

// vocabulary invents the words of a language behind its frequent ones.
func (c *Corpus) vocabulary(language string) []string {
	out := strings.Fields(frequent[language])
	syllables := strings.Fields("ba con de er fi gra hu in jo ka lo mi na or pe qui re sta tu um vo wi ex za tion ment ung schaft ie st")
	pick := func(low, n int) rune { return rune(low + c.r.IntN(n)) }
	for len(out) < vocabulary {
		var b strings.Builder
		switch language {
		case "zh":
			for range 1 + c.r.IntN(3) {
				b.WriteRune(pick(0x4e00, 2800))
			}
		case "ja":
			low, n := 0x30a1, 0x52 // katakana; hiragana; Chinese
			if k := c.r.IntN(3); k == 1 {
				low = 0x3042
			} else if k == 2 {
				low, n = 0x4e00, 1500
			}
			for range 1 + c.r.IntN(4) {
				b.WriteRune(pick(low, n))
			}
		case "ko":
			for range 1 + c.r.IntN(3) {
				b.WriteRune(pick(0xac00, 2000))
			}
		default:
			for range 1 + c.r.IntN(4) {
				b.WriteString(syllables[c.r.IntN(len(syllables))])
			}
		}
		out = append(out, b.String())
	}
	return out
}

func (c *Corpus) word(language string) string { return c.words[language][c.zipf.Uint64()] }

// length draws from a distribution with a long tail: half of what is drawn is
// below median, a few are a hundred times as long.
func (c *Corpus) length(median float64) int {
	return int(math.Min(median*math.Exp(c.r.NormFloat64()*1.2), median*400))
}

// prose writes about n characters.
func (c *Corpus) prose(language string, n int) string {
	var b strings.Builder
	for written := 0; written < n; {
		sentence := 4 + c.r.IntN(14)
		for i := range sentence {
			w := c.word(language)
			if c.r.IntN(25) == 0 {
				w = c.identifier()
			}
			if i > 0 && language != "zh" && language != "ja" {
				b.WriteByte(' ')
			}
			b.WriteString(w)
			written += len(w)/2 + 1
		}
		switch language {
		case "zh", "ja":
			b.WriteString("。")
		default:
			b.WriteString(". ")
		}
		if c.r.IntN(6) == 0 {
			b.WriteString("\n\n")
		}
	}
	return b.String()
}

// identifier is a name in a program.
func (c *Corpus) identifier() string {
	a, b := c.word("en"), c.word("en")
	switch c.r.IntN(4) {
	case 0:
		return a + "_" + b
	case 1:
		return a + strings.ToUpper(b[:1]) + b[1:]
	case 2:
		return a + "." + b + "()"
	}
	return fmt.Sprintf("%s%d", a, c.r.IntN(100))
}

// code writes about n characters of a program, or of what one has printed.
func (c *Corpus) code(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(strings.Repeat("\t", c.r.IntN(4)))
		switch c.r.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "func %s(%s %s) error {", c.identifier(), c.word("en"), c.word("en"))
		case 1:
			fmt.Fprintf(&b, "%s := %s // %s", c.identifier(), c.identifier(), c.prose("en", 20))
		case 2:
			fmt.Fprintf(&b, "src/%s/%s.go:%d:%d: %s", c.word("en"), c.word("en"), c.r.IntN(900), c.r.IntN(80), c.prose("en", 30))
		case 3:
			fmt.Fprintf(&b, "%08x  %s = %q", c.r.Uint32(), c.identifier(), c.word("en"))
		default:
			fmt.Fprintf(&b, "if %s != nil && %s(%s) > %d {", c.identifier(), c.identifier(), c.identifier(), c.r.IntN(1000))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Workspace is the working directory of the i-th workspace of any corpus.
func Workspace(i int) string { return fmt.Sprintf("/srv/project-%02d", i) }

// Workspaces is how many there are. The first has much more work than the last.
const Workspaces = 24

// Batches makes sessions, one after another, until there are at least so many
// events. Every batch but the first of a session names epoch 1, so they can be
// appended without waiting for each other.
func (c *Corpus) Batches(events int) iter.Seq[journal.Batch] {
	return func(yield func(journal.Batch) bool) {
		var parents [Workspaces][]string
		made := 0
		for n := 0; made < events; n++ {
			workspace := int(math.Min(c.r.ExpFloat64()*Workspaces/5, Workspaces-1))
			s := &past{c: c, language: languages[c.r.IntN(len(languages))], time: textTime + int64(n)*600_000, header: &sessionlog.Header{
				Version: sessionlog.V3, ID: fmt.Sprintf("past-%06d", n), CWD: Workspace(workspace),
			}}
			s.header.CreatedAt = s.time
			if older := parents[workspace]; len(older) > 0 && c.r.IntN(3) == 0 {
				s.header.ParentSession = older[len(older)-1-c.r.IntN(min(len(older), 8))]
			}
			parents[workspace] = append(parents[workspace], s.header.ID)
			turns := 1 + c.length(6)/2
			for turn := int64(1); turn <= int64(turns) && made < events; turn++ {
				for _, b := range s.turn(turn) {
					made += len(b.Events)
					if !yield(b) {
						return
					}
				}
			}
		}
	}
}

// past is one session of a corpus while it is written.
type past struct {
	c        *Corpus
	language string
	header   *sessionlog.Header
	time     int64
	next     int64
	surface  []int64
}

// batch stamps events and makes an append of them.
func (s *past) batch(events ...sessionlog.Event) journal.Batch {
	b := journal.Batch{Session: s.header.ID, Epoch: 1, Seq: s.next}
	if s.next == 0 {
		b.Epoch, b.Header = 0, s.header
	}
	for _, ev := range events {
		s.time += int64(s.c.r.IntN(20_000))
		if ev.SurfaceOp != nil && len(ev.SourceEventSeqs) == 0 {
			s.surface = append(s.surface, s.next)
		}
		b.Events = append(b.Events, ev.At(s.next, s.time))
		s.next++
	}
	return b
}

func (s *past) turn(turn int64) (out []journal.Batch) {
	c := s.c
	begin := []sessionlog.Event{sessionlog.TurnStart(turn), sessionlog.StepStart(turn, 1), User(c.prose(s.language, c.length(120)))}
	if turn == 1 {
		begin = append(begin, Titled(c.prose(s.language, 20)))
	}
	out = append(out, s.batch(begin...))
	steps := 1 + c.length(3)/2
	for step := int64(1); step <= int64(steps); step++ {
		var events []sessionlog.Event
		if step > 1 {
			events = append(events, sessionlog.StepStart(turn, step))
		}
		call := fmt.Sprintf("call-%d-%d", turn, step)
		arguments := string(object(map[string]string{"path": "src/" + c.word("en"), "text": c.code(c.length(90))}))
		said := c.prose(s.language, c.length(160))
		message := object(map[string]any{"id": call + "-m", "role": "assistant", "source": map[string]any{"kind": "model"}, "content": []any{
			map[string]any{"type": "reasoning", "text": c.prose(s.language, c.length(100))},
			map[string]any{"type": "text", "text": said}, map[string]any{"type": "tool-call", "id": call, "name": "edit", "arguments": arguments},
		}})
		events = append(events, sessionlog.AssistantMessage(turn, step, message), sessionlog.ToolCall(turn, step, call, "edit", arguments))
		out = append(out, s.batch(events...))
		result := sessionlog.ToolResult(turn, step, call, c.code(c.length(450)), c.r.IntN(12) == 0, "", "", s.next-1, call+"-r")
		result.SourceEventSeqs = nil
		out = append(out, s.batch(result, sessionlog.StepEnd(turn, step)))
	}
	end := []sessionlog.Event{sessionlog.TurnEnd(turn, sessionlog.Completed)}
	if c.r.IntN(10) == 0 {
		end = append(end, sessionlog.NewEvent("todo/write", object(map[string]any{"todos": []any{
			map[string]any{"content": c.prose(s.language, 40), "status": "pending"}, map[string]any{"content": c.prose(s.language, 40), "status": "completed"},
		}})))
	}
	out = append(out, s.batch(end...))
	if len(s.surface) > 60 && c.r.IntN(3) == 0 { // the context is full, and a summary takes its place
		gone := s.surface[:len(s.surface)-8]
		summary := Replacing(User(c.prose(s.language, c.length(900))), gone[0], gone[len(gone)-1], gone...)
		kept := append([]int64{s.next}, s.surface[len(s.surface)-8:]...)
		out = append(out, s.batch(summary))
		s.surface = kept
	}
	return out
}

// Load appends batches without waiting for each, and returns how many events
// they had.
func Load(j journal.Journal, batches iter.Seq[journal.Batch]) (events int, err error) {
	const window = 4096
	done := make(chan error, window)
	flying := 0
	for b := range batches {
		if flying == window {
			if e := <-done; err == nil {
				err = e
			}
			flying--
		}
		events += len(b.Events)
		flying++
		j.Append(b, func(_ journal.Appended, err error) { done <- err })
	}
	for range flying {
		if e := <-done; err == nil {
			err = e
		}
	}
	return events, err
}
