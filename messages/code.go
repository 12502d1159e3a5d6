package messages

import (
	"errors"
	"fmt"
	"slices"
)

// Code names one kind of refusal or fault. Codes are stable: programs branch
// on them, texts may be reworded at any time.
type Code string

// The codes of the spec.
const (
	CallerNotLive   Code = "CALLER_NOT_LIVE"
	DelegatedCaller Code = "DELEGATED_CALLER"
	AskAborted      Code = "ASK_ABORTED"
	AskTimedOut     Code = "ASK_TIMED_OUT"
	AskCancelled    Code = "ASK_CANCELLED"
	NoProvider      Code = "NO_PROVIDER"
	BadIntent       Code = "BAD_INTENT"
	BadTimeout      Code = "BAD_TIMEOUT"
	EmptyQuestions  Code = "EMPTY_QUESTIONS"
	DuplicateWait   Code = "DUPLICATE_WAIT"
	ReplyQueued     Code = "REPLY_QUEUED"
	BadAnswer       Code = "BAD_ANSWER"
	InvalidArgs     Code = "INVALID_ARGS"
)

// Codes of Parley's own.
const (
	Settled           Code = "SETTLED"
	NotAnswerable     Code = "NOT_ANSWERABLE"
	UnreadAnswer      Code = "UNREAD_ANSWER"
	NotFound          Code = "NOT_FOUND"
	BadRequest        Code = "BAD_REQUEST"
	TooLarge          Code = "TOO_LARGE"
	TurnClosed        Code = "TURN_CLOSED"
	StepClosed        Code = "STEP_CLOSED"
	CallsOpen         Code = "CALLS_OPEN"
	MessageGone       Code = "MESSAGE_GONE"
	MessagePending    Code = "MESSAGE_PENDING"
	Fenced            Code = "FENCED"
	Unavailable       Code = "UNAVAILABLE"
	Quarantined       Code = "QUARANTINED"
	Bug               Code = "BUG"
	Unauthenticated   Code = "UNAUTHENTICATED"
	ForbiddenRole     Code = "FORBIDDEN_ROLE"
	ForeignOrigin     Code = "FOREIGN_ORIGIN"
	JournalLocked     Code = "JOURNAL_LOCKED"
	JournalNewer      Code = "JOURNAL_NEWER"
	JournalCorrupt    Code = "JOURNAL_CORRUPT"
	JournalReadOnly   Code = "JOURNAL_READ_ONLY"
	JournalFull       Code = "JOURNAL_FULL"
	JournalIO         Code = "JOURNAL_IO"
	SessionCorrupt    Code = "SESSION_CORRUPT"
	SessionGeneration Code = "SESSION_GENERATION"
	SessionExists     Code = "SESSION_EXISTS"
	BadLog            Code = "BAD_LOG"
	StaleCursor       Code = "STALE_CURSOR"
)

// Codes of the session query tools (S-120, S-121).
const (
	QueryMissingAgent    Code = "SESSION_QUERY_TOOL_MISSING_AGENT"
	QueryUnauthorized    Code = "SESSION_QUERY_TOOL_UNAUTHORIZED"
	QueryNoCurrentStep   Code = "SESSION_QUERY_TOOL_NO_CURRENT_STEP"
	QueryFailed          Code = "SESSION_QUERY_TOOL_FAILED"
	QueryAborted         Code = "SESSION_QUERY_ABORTED"
	QueryCorruptSession  Code = "SESSION_QUERY_CORRUPT_SESSION"
	QueryEventNotFound   Code = "SESSION_QUERY_EVENT_NOT_FOUND"
	QueryIndexFailed     Code = "SESSION_QUERY_INDEX_FAILED"
	QueryInvalidCursor   Code = "SESSION_QUERY_INVALID_CURSOR"
	QueryInvalidFilter   Code = "SESSION_QUERY_INVALID_FILTER"
	QueryInvalidLimit    Code = "SESSION_QUERY_INVALID_LIMIT"
	QueryInvalidQuery    Code = "SESSION_QUERY_INVALID_QUERY"
	QueryInvalidLineage  Code = "SESSION_QUERY_INVALID_LINEAGE"
	QueryInvalidSurface  Code = "SESSION_QUERY_INVALID_SURFACE"
	QueryInvalidWindow   Code = "SESSION_QUERY_INVALID_WINDOW"
	QueryPersistence     Code = "SESSION_QUERY_PERSISTENCE_FAILED"
	QuerySearchDisabled  Code = "SESSION_QUERY_SEARCH_DISABLED"
	QuerySessionNotFound Code = "SESSION_QUERY_SESSION_NOT_FOUND"
	QueryStaleCursor     Code = "SESSION_QUERY_STALE_CURSOR"
	ToolTimeout          Code = "TOOL_TIMEOUT"
)

// Kind tells the three kinds of trouble apart.
type Kind string

const (
	// Refusal: the answer is no, and it is final for this request.
	RefusalKind Kind = "refusal"
	// Fault: the world failed; the same request may be sent again.
	FaultKind Kind = "fault"
	// BugKind: a broken invariant.
	BugKind Kind = "bug"
)

// Entry is one row of the registry: what a code means, and what it is at each door.
type Entry struct {
	Code    Code
	Kind    Kind
	Meaning string
	Cause   string
	Remedy  string
	// Connect is the Connect code's wire name, HTTP the status that the Connect
	// protocol gives it over plain HTTP, MCP the JSON-RPC error code (0: a tool result with isError),
	// Exit the status of the parley command.
	Connect string
	HTTP    int
	MCP     int
	Exit    int
}

// Exit codes of the parley command that are not errors of a code.
const (
	ExitOK      = 0
	ExitError   = 1
	ExitUsage   = 2
	ExitPending = 75
	ExitSkipped = 76 // every question of the batch was skipped: no answer, no permission
)

// Registry holds every code once, in the order of docs/errors.md.
var Registry = []Entry{
	{CallerNotLive, RefusalKind, "The caller is not the session's live root.", "Another root attached since, or none ever did.", "Attach again; if another agent now speaks for the session, stop this one.", "failed_precondition", 400, 0, 10},
	{DelegatedCaller, RefusalKind, "An owned child may not ask.", "The caller was attached with an owner.", "Put the open question into the child's final result; its root can ask.", "permission_denied", 403, 0, 11},
	{AskAborted, RefusalKind, "The question was taken back before anybody answered.", "Withdrawn, its turn was cancelled, or its session was deleted.", "Do not treat this as an answer. Ask again if it still matters.", "aborted", 409, 0, 12},
	{AskTimedOut, RefusalKind, "A client's countdown ended.", "Nobody answered in that client in time.", "A timed call turns this into pending; nothing to do.", "deadline_exceeded", 504, 0, 13},
	{AskCancelled, RefusalKind, "A person closed the blocking question.", "The panel of an unkeyed question was dismissed.", "Go on without an answer; it is not permission.", "canceled", 499, 0, 14},
	{NoProvider, RefusalKind, "Nobody can answer.", "A blocking question has no answerer, or the last one passed it on.", "Open a client that answers, or ask in timed mode, which waits.", "failed_precondition", 400, 0, 15},
	{BadIntent, RefusalKind, "An intent does not fit its question.", "`approve` names no option of the question, or `detail` is missing.", "Name one of the question's own option labels and add the detail to review.", "invalid_argument", 400, 0, 16},
	{BadTimeout, RefusalKind, "The timeout is not allowed.", "It is not a whole number in range.", "Give 1 to 2147483 seconds, or -1 for no deadline.", "invalid_argument", 400, 0, 17},
	{EmptyQuestions, RefusalKind, "The call asks nothing.", "`questions` is an empty list.", "Give at least one question.", "invalid_argument", 400, 0, 18},
	{DuplicateWait, RefusalKind, "The call already has a foreground wait.", "Another attempt for the same call id is waiting.", "Repeat with the same attempt id to attach to it, or use a new call id.", "already_exists", 409, 0, 19},
	{ReplyQueued, RefusalKind, "A reply for this question is already queued.", "Somebody answered first; the agent has not admitted that reply yet.", "Wait for its admission, or withdraw it to answer again.", "already_exists", 409, 0, 20},
	{BadAnswer, RefusalKind, "The batch does not answer the call.", "It must name each question id exactly once, in closed items.", "Send one item per question; a skip is {id, selected: []}.", "invalid_argument", 400, 0, 21},
	{InvalidArgs, RefusalKind, "The tool's arguments do not fit its schema.", "A required property is missing or has the wrong type.", "The text names every violation with its path; correct them and call again.", "invalid_argument", 400, 0, 22},
	{Settled, RefusalKind, "The question is settled.", "Somebody else was first; the refusal says who and how.", "Nothing to do; your draft was not used.", "failed_precondition", 400, 0, 23},
	{NotAnswerable, RefusalKind, "This call cannot be answered.", "The session does not know the call, or it is not open for answers.", "List the questions and take the call id from there.", "failed_precondition", 400, 0, 24},
	{NotFound, RefusalKind, "There is no such thing.", "The session, call or message id is unknown here.", "Check the id; lists show the ids that exist.", "not_found", 404, 0, 25},
	{BadRequest, RefusalKind, "The request is malformed.", "A field is missing, blank or out of range; the text names it.", "Correct the named field.", "invalid_argument", 400, -32602, 26},
	{TooLarge, RefusalKind, "A text or list is over its limit.", "The text names the field, its limit and the value found.", "Bring it under the limit that the text names.", "resource_exhausted", 429, 0, 27},
	{TurnClosed, RefusalKind, "The turn is not the one that is open.", "It has ended, or has not begun.", "Attach to learn the session's turn, then go on from there.", "failed_precondition", 400, 0, 28},
	{StepClosed, RefusalKind, "The step is not the one that is open.", "It has ended, or has not begun.", "Attach to learn the session's step, then go on from there.", "failed_precondition", 400, 0, 29},
	{CallsOpen, RefusalKind, "Calls of the step still wait.", "A step cannot end while a foreground call may return.", "Wait for the calls, withdraw them, or end the turn as aborted.", "failed_precondition", 400, 0, 30},
	{MessageGone, RefusalKind, "A message cannot be admitted.", "It was withdrawn, or is marked for another turn.", "Claim again and admit what is handed out; show the model nothing of this batch.", "failed_precondition", 400, 0, 31},
	{MessagePending, RefusalKind, "A message with this id is already pending.", "Message ids are unique across both lists.", "Use a new message id, or treat the earlier one as sent.", "already_exists", 409, 0, 32},
	{Fenced, FaultKind, "Another activation owns the session.", "This one has been superseded and stopped itself.", "Send the request again; it will reach the owner.", "unavailable", 503, 0, 69},
	{Unavailable, FaultKind, "The node cannot serve this now.", "It is stopping, restarting a session, or its journal failed; the text says which.", "Send the same request again; nothing was half done.", "unavailable", 503, 0, 69},
	{Quarantined, FaultKind, "The session has been taken out of service.", "It failed to start five times within a minute; other sessions are not affected.", "Read the node's log for the cause. It is tried again after a minute.", "unavailable", 503, 0, 70},
	{Bug, BugKind, "Parley broke one of its own rules on this request.", "The request crashed its session twice and is not tried again.", "Report it with the node's log. Other requests go on.", "internal", 500, -32603, 70},
	{Unauthenticated, RefusalKind, "The token is missing or wrong.", "The node wants a bearer token.", "Send `Authorization: Bearer …`, or set PARLEY_TOKEN for the parley command.", "unauthenticated", 401, 0, 77},
	{ForbiddenRole, RefusalKind, "The token is of a role that may not do this.", "Each method belongs to roles; the text names those that may call this one.", "Use the token of a role that the text names. An operator's may do everything.", "permission_denied", 403, 0, 77},
	{ForeignOrigin, RefusalKind, "The request came from a foreign page or host name.", "Its Origin or Host is not one this node serves.", "Open the node by its own address, or add the origin with --allow-origin.", "permission_denied", 403, 0, 77},
	{JournalLocked, FaultKind, "Another process has the journal open.", "A second writer on one file would lose answers, so it is refused.", "Stop the other process, or use the running node through its address.", "unavailable", 503, 0, 73},
	{JournalNewer, FaultKind, "The journal was written by a newer Parley.", "Its schema version is not known to this build.", "Run the newer version, or restore a backup made before the upgrade.", "failed_precondition", 400, 0, 73},
	{JournalCorrupt, FaultKind, "The journal file is damaged.", "SQLite found it malformed, or it is not a Parley journal.", "Keep a copy, restore the last backup, and check the disk.", "data_loss", 500, 0, 73},
	{JournalReadOnly, FaultKind, "The journal cannot be written.", "The file, its folder or its disk is read-only.", "Make it writable for this user, or choose another with --journal.", "failed_precondition", 400, 0, 73},
	{JournalFull, FaultKind, "The disk is full.", "The journal could not grow; nothing was recorded and nothing was acknowledged.", "Free space; requests then succeed again without a restart.", "resource_exhausted", 429, 0, 73},
	{JournalIO, FaultKind, "The disk failed.", "Reading or writing the journal returned an error; the text has it.", "Check the disk. Send the request again: it is answered from the log if it had been recorded.", "unavailable", 503, 0, 73},
	{SessionCorrupt, FaultKind, "This session's log is damaged.", "A record does not follow from the ones before it; the text says where.", "Export what is readable with `parley log`, and restore the session from a backup.", "data_loss", 500, 0, 70},
	{SessionGeneration, RefusalKind, "This session's log is of a generation that cannot be written.", "It was imported, and keeps its own generation.", "Read, search and export it; start a new session to ask.", "failed_precondition", 400, 0, 33},
	{SessionExists, RefusalKind, "There is a session of this name already.", "An import never adds to a session and never replaces one.", "Import it under another name (`parley import FILE --as NAME`); `parley export` shows what is there.", "already_exists", 409, 0, 34},
	{UnreadAnswer, RefusalKind, "An equal question has been answered, and the answer may not have been read.", "A person answered, and the response that carried the answer was lost, as far as can be told. It is not given to a new call: an answer is no permission for the next time.", "Call collect_replies (InboxService.CollectReplies), which lists it. If it is not what you need, ask again then.", "failed_precondition", 409, 0, 36},
	{BadLog, RefusalKind, "The log cannot be imported.", "It is no log in the public session format, or a record does not follow from the ones before it; the text says where.", "Correct the named line, or export the session again where it was written. Nothing was imported.", "invalid_argument", 400, 0, 35},
	{StaleCursor, RefusalKind, "The page to go on from is not there any more.", "The hit that the continuation names was deleted, replaced or outranked since.", "Search again from the start; no page is shown in place of the one asked for.", "aborted", 409, 0, 37},
	{QueryMissingAgent, RefusalKind, "No agent is behind this call.", "Past work belongs to a workspace, and only an attached agent has one.", "Attach to a session, or call through a door that has.", "failed_precondition", 400, 0, 40},
	{QueryUnauthorized, RefusalKind, "The session is not of the caller's workspace.", "It is another workspace's, or there is no such session; the two look the same.", "Search, and take the session id from there. A caller without a workspace sees itself alone.", "permission_denied", 403, 0, 41},
	{QueryNoCurrentStep, RefusalKind, "The caller's session has no step yet.", "A search of one's own session leaves out the running step, so there must be one.", "Begin a step, or search another session.", "failed_precondition", 400, 0, 42},
	{QueryFailed, FaultKind, "Past work could not be read.", "The cause is in the node's log.", "Try once more; if it stays, ask the operator to read the node's log.", "internal", 500, 0, 70},
	{QueryAborted, RefusalKind, "The search was cancelled.", "The caller ended it.", "Nothing to do.", "aborted", 409, 0, 12},
	{QueryCorruptSession, FaultKind, "The session's log is damaged.", "An event does not follow from the ones before it.", "Other sessions can be read; the operator can restore this one from a backup.", "data_loss", 500, 0, 70},
	{QueryEventNotFound, RefusalKind, "The session has no such event.", "The number is behind the end of its log.", "Take the seq from a search, a trace or a read.", "not_found", 404, 0, 25},
	{QueryIndexFailed, FaultKind, "The text index failed.", "Its file could not be opened, read or written.", "Try again; if it stays, ask the operator to read the node's log. Trace and read work.", "unavailable", 503, 0, 73},
	{QueryInvalidCursor, RefusalKind, "The continuation is not one of this search.", "It was made for another request, or is damaged.", "Search again without it.", "invalid_argument", 400, 0, 26},
	{QueryInvalidFilter, RefusalKind, "A filter's value is not allowed.", "The text names it.", "Correct the named value, or leave it out.", "invalid_argument", 400, 0, 26},
	{QueryInvalidLimit, RefusalKind, "The page size is not allowed.", "It is not from 1 to 100.", "Give a size from 1 to 100.", "invalid_argument", 400, 0, 26},
	{QueryInvalidQuery, RefusalKind, "The query is empty, or holds a NUL.", "There is nothing to look for.", "Give a word or a phrase that stands in the text you look for.", "invalid_argument", 400, 0, 26},
	{QueryInvalidLineage, FaultKind, "The session descends from itself.", "The parents that its headers name form a ring.", "Read the session by its id; its ancestors cannot be shown.", "data_loss", 500, 0, 70},
	{QueryInvalidSurface, FaultKind, "The session's replacements do not fit together.", "An event replaces what it may not.", "Other sessions can be read.", "data_loss", 500, 0, 70},
	{QueryInvalidWindow, RefusalKind, "The window is too wide.", "`before` or `after` is above its limit.", "Ask for fewer events around the target, and read on from there.", "invalid_argument", 400, 0, 26},
	{QueryPersistence, FaultKind, "The journal could not be read.", "The cause is in the node's log.", "Try again; if it stays, ask the operator to read the node's log.", "unavailable", 503, 0, 73},
	{QuerySearchDisabled, RefusalKind, "Search is switched off on this node.", "It was started without its text index.", "Trace and read work; start the node with its index to search.", "failed_precondition", 400, 0, 43},
	{QuerySessionNotFound, RefusalKind, "There is no such session.", "It is unknown here.", "Take the session id from a search.", "not_found", 404, 0, 25},
	{ToolTimeout, FaultKind, "A tool took longer than it may.", "A search over many sessions, or a node under load.", "Narrow the query or add filters, and call again.", "deadline_exceeded", 504, 0, 44},
	{QueryStaleCursor, RefusalKind, "The corpus has changed since the page before.", "What the continuation pointed at is gone or stands elsewhere now.", "Search again from the beginning.", "aborted", 409, 0, 37},
}

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(Registry))
	for _, e := range Registry {
		m[e.Code] = e
	}
	return m
}()

// Lookup returns the registry's row of a code. An unknown code (a newer
// node's) is shown as it is, as a fault.
func Lookup(c Code) Entry {
	if e, ok := byCode[c]; ok {
		return e
	}
	return Entry{Code: c, Kind: FaultKind, Meaning: "A code this version does not know.", Connect: "unknown", HTTP: 500, Exit: ExitError}
}

// Codes lists every registered code in order.
func Codes() []Code {
	out := make([]Code, 0, len(Registry))
	for _, e := range Registry {
		out = append(out, e.Code)
	}
	return slices.Clip(out)
}

// Error is a refusal or a fault on its way to a caller.
type Error struct {
	Code Code
	// Text says what happened, with names and values. It may be reworded.
	Text string
	// Winner is set when the refusal is about a settled call.
	Winner *Settlement
}

// Refuse makes an error of a code.
func Refuse(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Text: fmt.Sprintf(format, args...)}
}

// Error gives code, text and remedy: what happened and what to do next.
func (e *Error) Error() string {
	if r := Lookup(e.Code).Remedy; r != "" {
		return string(e.Code) + ": " + e.Text + " (" + r + ")"
	}
	return string(e.Code) + ": " + e.Text
}

// Is matches on the code alone, so that rewording breaks no caller.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Temporary reports whether the same request may be sent again.
func (e *Error) Temporary() bool { return Lookup(e.Code).Kind == FaultKind }

// CodeOf returns the code of an error, or "" for one that carries none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Wire turns the error into its protobuf form.
func (e *Error) Wire() *Refusal {
	return &Refusal{Code: string(e.Code), Text: e.Text, Remedy: Lookup(e.Code).Remedy, Winner: e.Winner}
}

// FromWire is the inverse of Wire.
func FromWire(r *Refusal) *Error {
	return &Error{Code: Code(r.GetCode()), Text: r.GetText(), Winner: r.GetWinner()}
}
