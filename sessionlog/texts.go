package sessionlog

import (
	"encoding/json"
)

// ToolName is the exact name of the question tool.
const ToolName = "ask_user_question"

// ParseArguments reads the raw argument text of a question call and maps its questions to the stored list
// compact JSON, only the fields a client shows, strings kept code unit for code unit. ids are the question
// ids in order, repeated ones included; one with an unpaired surrogate is WTF-8. False when the arguments
// cannot be read, with one bad item as with none.
func ParseArguments(raw string) (questions json.RawMessage, ids []string, ok bool) {
	questions, ok = readArguments([]byte(raw))
	if !ok {
		return nil, nil, false
	}
	return questions, questionIDs(questions), true
}

// ParseQuestions is ParseArguments for arguments that are a JSON value, as nested calls have them.
func ParseQuestions(arguments json.RawMessage) (questions json.RawMessage, ids []string, ok bool) {
	v, valid := parse(arguments)
	if !valid {
		return nil, nil, false
	}
	if questions, ok = mapQuestions(v); !ok {
		return nil, nil, false
	}
	return questions, questionIDs(questions), true
}

func readArguments(text []byte) ([]byte, bool) {
	v, ok := parseText(text)
	if !ok {
		return nil, false
	}
	return mapQuestions(v)
}

// mapQuestions reads `questions` of a record by Q-137 and writes the list of Q-138.
func mapQuestions(arguments value) ([]byte, bool) {
	list := arguments.get("questions")
	if !list.isList() || list.empty() {
		return nil, false
	}
	return mapList(list, appendQuestion)
}

// mapList writes a list item by item; one bad item spoils it.
func mapList(list value, write func(dst []byte, item value) ([]byte, bool)) ([]byte, bool) {
	dst := append(make([]byte, 0, len(list)), '[')
	for item := range list.elements {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = write(dst, item); !ok {
			return nil, false
		}
	}
	return append(dst, ']'), true
}

func appendQuestion(dst []byte, item value) ([]byte, bool) {
	var id, question, header, options, multi value
	for k, v := range item.members {
		switch {
		case k.is("id"):
			id = v
		case k.is("question"):
			question = v
		case k.is("header"):
			header = v
		case k.is("options"):
			options = v
		case k.is("multi_select"):
			multi = v
		}
	}
	// Absent is fine for the last three, an explicit null is not.
	if !id.isString() || !question.isString() || header != nil && !header.isString() ||
		options != nil && !options.isList() || multi != nil && !multi.isTrue() && !multi.isFalse() {
		return dst, false
	}
	dst = appendToken(append(dst, `{"id":`...), id)
	dst = appendToken(append(dst, `,"question":`...), question)
	if header != nil {
		dst = appendToken(append(dst, `,"header":`...), header)
	}
	if options != nil {
		var ok bool
		if dst, ok = appendOptions(append(dst, `,"options":`...), options); !ok {
			return dst, false
		}
	}
	if multi != nil {
		dst = append(append(dst, `,"multiSelect":`...), multi...)
	}
	return append(dst, '}'), true
}

func appendOptions(dst []byte, options value) ([]byte, bool) {
	dst = append(dst, '[')
	n := 0
	for option := range options.elements {
		var label, description value
		for k, v := range option.members {
			switch {
			case k.is("label"):
				label = v
			case k.is("description"):
				description = v
			}
		}
		if !label.isString() || description != nil && !description.isString() {
			return dst, false
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = appendToken(append(dst, `{"label":`...), label)
		if description != nil {
			dst = appendToken(append(dst, `,"description":`...), description)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), true
}

// questionIDs reads the ids of a stored list, in order.
func questionIDs(questions json.RawMessage) []string {
	var ids []string
	for item := range value(questions).elements {
		id, _ := item.get("id").str()
		ids = append(ids, id)
	}
	return ids
}

// ParseAnswers reads an answer list by the closed shape of: items of exactly id, selected and optional
// custom. The result is compact JSON with the fields in this order; ids are the items' ids in order. False for
// anything else, one extra field in one item included.
func ParseAnswers(raw json.RawMessage) (answers json.RawMessage, ids []string, ok bool) {
	v, valid := parse(raw)
	if !valid {
		return nil, nil, false
	}
	if answers, ok = mapAnswers(v); !ok {
		return nil, nil, false
	}
	return answers, questionIDs(answers), true
}

// ReadBatch reads the answers out of the text of a result or reply: a JSON record whose `answers` has the closed shape
// of ParseAnswers; other fields beside it do not matter.
func ReadBatch(text string) (answers json.RawMessage, ok bool) {
	v, valid := parseText([]byte(text))
	if !valid {
		return nil, false
	}
	return mapAnswers(v.get("answers"))
}

func mapAnswers(list value) ([]byte, bool) {
	if !list.isList() {
		return nil, false
	}
	return mapList(list, appendAnswer)
}

func appendAnswer(dst []byte, item value) ([]byte, bool) {
	var id, selected, custom value
	for k, v := range item.members {
		switch {
		case k.is("id"):
			id = v
		case k.is("selected"):
			selected = v
		case k.is("custom"):
			custom = v
		default:
			return dst, false
		}
	}
	if !id.isString() || !selected.isList() || custom != nil && !custom.isString() {
		return dst, false
	}
	dst = appendToken(append(dst, `{"id":`...), id)
	dst = append(dst, `,"selected":[`...)
	n := 0
	for label := range selected.elements {
		if !label.isString() {
			return dst, false
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = appendToken(dst, label)
	}
	dst = append(dst, ']')
	if custom != nil {
		dst = appendToken(append(dst, `,"custom":`...), custom)
	}
	return append(dst, '}'), true
}

// IsPending says whether a result text is the pending payload: a JSON record whose `pending` is exactly true.
func IsPending(text string) bool {
	v, ok := parseText([]byte(text))
	return ok && v.get("pending").isTrue()
}

// PendingGuidance is what a pending result tells the model.
const PendingGuidance = "No answer arrived before the timeout. The question is pending: this is not a skip and not permission. " +
	"Go on with independent work. The user can still answer; the reply will arrive as a user message of kind " +
	"answer_to_pending_question with this callId and the original questions."

// PendingText is the result of a call whose wait ended without an answer: pending is neither a skip nor
// a permission, and says so.
func PendingText(callID string) string {
	d := appendString([]byte(`{"pending":true,"callId":`), callID)
	d = appendString(append(d, `,"message":`...), PendingGuidance)
	d = append(d, '}')
	return string(d)
}

// AnsweredText is the result of a call that was answered in time. answers must be a list as ParseAnswers
// returns it.
func AnsweredText(answers json.RawMessage) string {
	return `{"answers":` + string(answers) + `}`
}

// ReplyMessage builds the late answer: a user message whose text is one compact JSON record with the
// keys kind, tool, callId, questions, answers in this order. questions is the projection's list for the call, answers
// the batch as it was given; both must be valid JSON.
func ReplyMessage(id, callID string, questions, answers json.RawMessage) Message {
	text := appendString([]byte(`{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":`), callID)
	text = appendUsual(append(text, `,"questions":`...), value(questions))
	text = appendUsual(append(text, `,"answers":`...), value(answers))
	text = append(text, '}')

	d := appendString([]byte(`{"id":`), id)
	d = appendString(append(d, `,"role":"user","source":{"kind":"user-question-reply","callId":`...), callID)
	d = appendString(append(d, `,"outcome":"answered"},"content":[{"type":"text","text":`...), text)
	return Message{ID: id, ReplyTo: callID, Raw: append(d, `}]}`...)}
}
