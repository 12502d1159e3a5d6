package messages

import "google.golang.org/protobuf/proto"

// Message is anything that travels between addresses. It is always protobuf,
// so that it can cross a network, and only this package can add to it.
type Message interface {
	proto.Message
	parley()
}

// Command is a message to a session. GetSession names it.
type Command interface {
	Message
	GetSession() string
	command()
}

// Reply is what a session answers to a command.
type Reply interface {
	Message
	reply()
}

func (*AttachRequest) parley()            {}
func (*BeginTurnRequest) parley()         {}
func (*BeginStepRequest) parley()         {}
func (*EndStepRequest) parley()           {}
func (*EndTurnRequest) parley()           {}
func (*AskRequest) parley()               {}
func (*AskDetachRequest) parley()         {}
func (*EndForegroundRequest) parley()     {}
func (*SubmitRequest) parley()            {}
func (*ExpireRequest) parley()            {}
func (*DelegateRequest) parley()          {}
func (*DismissRequest) parley()           {}
func (*WithdrawQuestionRequest) parley()  {}
func (*SteerRequest) parley()             {}
func (*ClaimMessagesRequest) parley()     {}
func (*AdmitMessagesRequest) parley()     {}
func (*WithdrawMessageRequest) parley()   {}
func (*AwaitInboxRequest) parley()        {}
func (*CollectRepliesRequest) parley()    {}
func (*AcknowledgeRequest) parley()       {}
func (*ClaimOpen) parley()                {}
func (*ClaimRelease) parley()             {}
func (*AttachRequest) command()           {}
func (*BeginTurnRequest) command()        {}
func (*BeginStepRequest) command()        {}
func (*EndStepRequest) command()          {}
func (*EndTurnRequest) command()          {}
func (*AskRequest) command()              {}
func (*AskDetachRequest) command()        {}
func (*EndForegroundRequest) command()    {}
func (*SubmitRequest) command()           {}
func (*ExpireRequest) command()           {}
func (*DelegateRequest) command()         {}
func (*DismissRequest) command()          {}
func (*WithdrawQuestionRequest) command() {}
func (*SteerRequest) command()            {}
func (*ClaimMessagesRequest) command()    {}
func (*AdmitMessagesRequest) command()    {}
func (*WithdrawMessageRequest) command()  {}
func (*AwaitInboxRequest) command()       {}
func (*CollectRepliesRequest) command()   {}
func (*AcknowledgeRequest) command()      {}
func (*ClaimOpen) command()               {}
func (*ClaimRelease) command()            {}

func (*Wake) parley()                     {}
func (*ClaimFrame) parley()               {}
func (*ClaimEnd) parley()                 {}
func (*Refusal) parley()                  {}
func (*AttachResponse) parley()           {}
func (*BeginTurnResponse) parley()        {}
func (*BeginStepResponse) parley()        {}
func (*EndStepResponse) parley()          {}
func (*EndTurnResponse) parley()          {}
func (*AskResponse) parley()              {}
func (*EndForegroundResponse) parley()    {}
func (*SubmitResponse) parley()           {}
func (*ExpireResponse) parley()           {}
func (*DelegateResponse) parley()         {}
func (*DismissResponse) parley()          {}
func (*WithdrawQuestionResponse) parley() {}
func (*SteerResponse) parley()            {}
func (*ClaimMessagesResponse) parley()    {}
func (*AdmitMessagesResponse) parley()    {}
func (*WithdrawMessageResponse) parley()  {}
func (*AwaitInboxResponse) parley()       {}
func (*CollectRepliesResponse) parley()   {}
func (*AcknowledgeResponse) parley()      {}
func (*Refusal) reply()                   {}
func (*AttachResponse) reply()            {}
func (*BeginTurnResponse) reply()         {}
func (*BeginStepResponse) reply()         {}
func (*EndStepResponse) reply()           {}
func (*EndTurnResponse) reply()           {}
func (*AskResponse) reply()               {}
func (*EndForegroundResponse) reply()     {}
func (*SubmitResponse) reply()            {}
func (*ExpireResponse) reply()            {}
func (*DelegateResponse) reply()          {}
func (*DismissResponse) reply()           {}
func (*WithdrawQuestionResponse) reply()  {}
func (*SteerResponse) reply()             {}
func (*ClaimMessagesResponse) reply()     {}
func (*AdmitMessagesResponse) reply()     {}
func (*WithdrawMessageResponse) reply()   {}
func (*AwaitInboxResponse) reply()        {}
func (*CollectRepliesResponse) reply()    {}
func (*AcknowledgeResponse) reply()       {}
