package sessionlog

import (
	"fmt"
)

// Types of the format that this package reads or writes (L-020, section I of the log's rules).
const (
	TypeTurnStart        = "turn/start"
	TypeTurnEnd          = "turn/end"
	TypeStepStart        = "step/start"
	TypeStepEnd          = "step/end"
	TypeRequestHeader    = "request/header"
	TypeSystemMessage    = "system/message"
	TypeDeveloperMessage = "developer/message"
	TypeUserMessage      = "user/message"
	TypeAssistantMessage = "assistant/message"
	TypeToolCall         = "tool/call"
	TypeToolResult       = "tool/result"
	TypeDispatchStart    = "tool/ptc-dispatch-start"
	TypeDispatch         = "tool/ptc-dispatch"
	TypeInboxSpliced     = "agent/inbox/spliced"
	TypeEndSeed          = "session/end-seed"

	typeCodeDispatchStart = "tool/code-dispatch-start" // v0 name of TypeDispatchStart
	typeCodeDispatch      = "tool/code-dispatch"       // v0 name of TypeDispatch
	typeSteeringMessage   = "steering/message"         // v0, from before the inbox
)

// generations says in which formats a type is known, and where it makes a message for the model (L-020).
type generations struct{ v0, v3, surfaceV0, surfaceV3 bool }

var (
	logOnly   = generations{v0: true, v3: true}
	logOnlyV0 = generations{v0: true}
	logOnlyV3 = generations{v3: true}
	onSurface = generations{v0: true, v3: true, surfaceV0: true, surfaceV3: true}
)

// knownTypes is the one table of types that a log may hold without saying that they are ignorable (L-014).
// Our own parley/… types are ignorable by construction and need no row.
var knownTypes = map[string]generations{
	TypeUserMessage:       onSurface,
	TypeAssistantMessage:  onSurface,
	TypeToolResult:        onSurface,
	TypeSystemMessage:     {v3: true, surfaceV3: true},
	TypeDeveloperMessage:  {v3: true, surfaceV3: true},
	typeSteeringMessage:   {v0: true, surfaceV0: true},
	TypeTurnStart:         logOnly,
	TypeTurnEnd:           logOnly,
	TypeStepStart:         logOnly,
	TypeStepEnd:           logOnly,
	TypeRequestHeader:     logOnly,
	"request/context":     logOnly,
	"assistant/chunk":     logOnlyV0,
	"assistant/attempt":   logOnlyV3,
	TypeToolCall:          logOnly,
	TypeDispatchStart:     logOnlyV3,
	TypeDispatch:          logOnlyV3,
	typeCodeDispatchStart: logOnlyV0,
	typeCodeDispatch:      logOnlyV0,
	TypeInboxSpliced:      logOnly,
	TypeEndSeed:           logOnly,
	"session/title":       logOnly,
	"todo/write":          logOnly,

	// Kept by other parts of the agents whose logs we import; we carry them and read nothing in them.
	"approval/asked":            logOnly,
	"approval/decided":          logOnly,
	"approval/policy":           logOnly,
	"command/done":              logOnly,
	"command/run":               logOnly,
	"compaction/end":            logOnly,
	"compaction/start":          logOnly,
	"compaction/summary":        logOnly,
	"goal/change":               logOnly,
	"hook/invoked":              logOnly,
	"hook/result":               logOnly,
	"llm/retry":                 logOnly,
	"llm/retry-started":         logOnly,
	"permission/preset":         logOnly,
	"plan/mode":                 logOnly,
	"sandbox/mode":              logOnly,
	"session/title-llm-request": logOnly,
	"subagent/descriptor":       logOnly,
	"tool-workflow/agent-end":   logOnly,
	"tool-workflow/agent-start": logOnly,
	"tool-workflow/run-end":     logOnly,
	"tool-workflow/run-start":   logOnly,
}

func isKnown(version int, typ string) bool {
	g := knownTypes[typ]
	return version == V0 && g.v0 || version == V3 && g.v3
}

func isSurface(version int, typ string) bool {
	g := knownTypes[typ]
	return version == V0 && g.surfaceV0 || version == V3 && g.surfaceV3
}

// ValidateEvents judges a whole log of generation v (V0 or V3): positions without gaps (L-011), no unknown type unless
// it is ignorable (L-014), surface fields that fit together (L-020 to L-025), and v3's rule that an error on a tool
// result needs isError (section K). One violation makes the whole log unreadable (L-024). The error is a
// *CorruptError or an *UnsupportedError.
func ValidateEvents(v int, events []Event) error {
	if v != V0 && v != V3 {
		return &UnsupportedError{Seq: -1, Problem: fmt.Sprintf("log format v%d", v), Remedy: "this build reads v0 and v3"}
	}
	for i, ev := range events {
		if ev.Seq != int64(i) {
			return gap(ev.Seq, int64(i))
		}
		if err := checkEvent(v, ev); err != nil {
			return err
		}
	}
	_, err := Surface(v, events)
	return err
}

// checkEvent judges what an event says of itself, without its place and its surface fields.
func checkEvent(v int, ev Event) error {
	if !isKnown(v, ev.Type) && !ev.Ignorable {
		return &UnsupportedError{Seq: ev.Seq, Problem: fmt.Sprintf("event type %q is not known in format v%d", ev.Type, v),
			Remedy: "upgrade Parley to open this session"}
	}
	if v == V3 && ev.Type == TypeToolResult {
		data := value(ev.Data)
		if data.get("error") != nil && !data.get("message").get("isError").isTrue() {
			return corruptAt(ev.Seq, "a tool/result with an error must have isError true")
		}
	}
	return nil
}

func gap(seq, want int64) error {
	return &CorruptError{Seq: seq, Problem: fmt.Sprintf("seq is not contiguous: expected %d", want),
		Remedy: "restore the missing events from a copy of the log"}
}

func corruptAt(seq int64, format string, args ...any) error {
	return &CorruptError{Seq: seq, Problem: fmt.Sprintf(format, args...),
		Remedy: "the whole log is refused; restore it from a copy, or correct this record"}
}

// Inherited returns how many leading events a session took over from its parent (L-080): v0 says it in the header,
// v3 by the position of the last `session/end-seed` that says inherited. Ownership folds skip them (L-083).
func Inherited(h Header, events []Event) int64 {
	if h.Version == V0 {
		if h.SeedLength != nil {
			return *h.SeedLength
		}
		return 0
	}
	if !h.IsSeeded {
		return 0
	}
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type == TypeEndSeed && value(events[i].Data).get("inherited").isTrue() {
			return events[i].Seq
		}
	}
	return 0
}
