import { Agent } from "./agent.js";
import { Claim, type ClaimOptions } from "./claim.js";
import { Connection, encodable, newId, whole, type ParleyOptions } from "./connection.js";
import { ParleyError } from "./errors.js";
import { AttachRequestSchema, OnExpired, SubmitRequestSchema } from "./gen/command_pb.js";
import { GetQuestionRequestSchema, ListQuestionsRequestSchema } from "./gen/service_pb.js";
import { answersToWire, callOf, settlementOf, type Answer, type QuestionCall, type Settlement } from "./types.js";
import { watch, type Change, type WatchOptions } from "./watch.js";

export interface AttachOptions {
  /** The session that owns this agent: a child, which may not ask. */
  owner?: string | undefined;
  /** The absolute working directory, recorded when the session is new. */
  cwd?: string | undefined;
  /** The agent's preset, recorded when the session is new. */
  preset?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface Filter {
  /** Only this session's questions; absent: everybody's. */
  session?: string | undefined;
  /** Settled ones too; needs `session`. */
  settled?: boolean | undefined;
  limit?: number | undefined;
  /** The `next` of the page before. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface Page {
  questions: QuestionCall[];
  /** A watch may go on from here. */
  cursor: number;
  /** Empty on the last page. */
  next: string;
}

/** One answer to a call. */
export interface Submission {
  session: string;
  callId: string;
  /** One item per question. */
  answers: readonly Answer[];
  /** Who answers, in words for people. */
  by?: string | undefined;
  /** The key of repetition: a repeat of an accepted submission gets the first outcome again. Drawn when absent. */
  submissionId?: string | undefined;
  /** The callSeq of the question that was shown: should it have been asked anew since, the answer is refused. */
  callSeq?: number | undefined;
  /** Refuse an answer that loses to the deadline, instead of queueing it as a reply. */
  rejectLate?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface Submitted {
  /** answered: it is the tool's result; skipped: so is a batch of skips; queued: it is a reply. */
  outcome: string;
  submissionId: string;
  settlement: Settlement;
  /** This submission had been accepted before. */
  repeated: boolean;
}

/** Parley speaks to one node, for agents that ask and for clients that answer. */
export class Parley {
  /** The services as generated, for what this package has no words for: see `@parley/client/protocol`. */
  readonly rpc: Pick<Connection, "sessions" | "questions" | "inbox">;
  readonly #node: Connection;

  constructor(options: ParleyOptions) {
    this.#node = new Connection(options);
    const { sessions, questions, inbox } = this.#node;
    this.rpc = { sessions, questions, inbox };
  }

  /**
   * Makes root the one agent that may speak for the session, which is created
   * when there is none. The same root again changes nothing; another one takes
   * over, and the questions that the old one waited for end.
   */
  async attach(session: string, root: string, { owner = "", cwd = "", preset = "", signal }: AttachOptions = {}): Promise<Agent> {
    const request = encodable(AttachRequestSchema, { session, root, owner, cwd, agentPreset: preset });
    const { created, tookOver, queued } = await this.#node.persist("prompt", signal, (options) => this.#node.sessions.attach(request, options));
    return new Agent(this.#node, session, root, { created, tookOver, queued });
  }

  /** Lists one page of question calls. */
  async questions({ session = "", settled = false, limit = 0, after = "", signal }: Filter = {}): Promise<Page> {
    const request = encodable(ListQuestionsRequestSchema, { session, settled, limit, after });
    const page = await this.#node.persist("prompt", signal, (options) => this.#node.questions.listQuestions(request, options));
    return { questions: page.questions.map(callOf), cursor: Number(page.cursor), next: page.next };
  }

  /** Shows one call, active or settled. NOT_FOUND: nobody asked it. */
  async question(session: string, callId: string, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<QuestionCall> {
    const request = encodable(GetQuestionRequestSchema, { session, callId });
    const { question } = await this.#node.persist("prompt", signal, (options) => this.#node.questions.getQuestion(request, options));
    if (question === undefined) throw new ParleyError({ code: "NOT_FOUND", text: `the node has no call ${callId} in session ${session}` });
    return callOf(question);
  }

  /**
   * Yields the active questions and then every change, in the order in which
   * they were recorded, without gap or repeat whatever happens to connections
   * and nodes. Whoever watches counts as somebody who can answer.
   */
  watch(options: WatchOptions = {}): AsyncGenerator<Change, never, undefined> {
    return watch(this.#node, options);
  }

  /**
   * Holds a question's deadline while a person looks at it. Undefined: no call
   * waits in front of it (any more); it may still be answered late.
   */
  async claim(session: string, callId: string, options: ClaimOptions = {}): Promise<Claim | undefined> {
    return await Claim.open(this.#node, session, callId, options);
  }

  /**
   * Answers a call, in time or late, and returns once the answer is recorded.
   * The loser of a race gets SETTLED or REPLY_QUEUED, with the winner.
   */
  async submit(submission: Submission): Promise<Submitted> {
    const { session, callId, by = "", submissionId = newId("a"), callSeq = 0, signal } = submission;
    const request = encodable(SubmitRequestSchema, {
      session,
      callId,
      submissionId,
      by,
      answers: answersToWire(submission.answers),
      callSeq: whole("callSeq", callSeq),
      onExpired: submission.rejectLate ? OnExpired.REJECT : OnExpired.LATE,
    });
    try {
      const response = await this.#node.persist("prompt", signal, (options) => this.#node.questions.submit(request, options));
      const settlement = settlementOf(response.settlement);
      return { outcome: settlement.outcome, submissionId, settlement, repeated: response.repeated };
    } catch (reason) {
      if (reason instanceof ParleyError && reason.temporary) reason.retryKey = submissionId;
      throw reason;
    }
  }
}
