import type { CallOptions } from "@connectrpc/connect";

import { encodable, holdMs, newId, sleep, whole, type Connection, type Patience } from "./connection.js";
import { ParleyError } from "./errors.js";
import {
  AcknowledgeRequestSchema,
  AskRequestSchema,
  AwaitInboxRequestSchema,
  CollectRepliesRequestSchema,
  EndForegroundRequestSchema,
  WithdrawQuestionRequestSchema,
  type AskRequest,
  type AskResponse,
  type CollectedReply,
} from "./gen/command_pb.js";
import { answerOf, questionsToWire, settlementOf, type Answer, type Question, type Settlement } from "./types.js";

const courtesyMs = 5_000; // for what is said after a result, which nobody waits for

/** One ask_user_question call. Give `questions`, `arguments`, or an `attempt` that was asked before. */
export interface Ask {
  questions?: readonly Question[] | undefined;
  /** The raw argument text of the model's tool call, which names its own timeout; the node checks it. */
  arguments?: string | undefined;
  /** The foreground wait in whole seconds; -1: no deadline; absent: the node's default. */
  timeoutSeconds?: number | undefined;
  /**
   * The key of repetition: the same attempt, from this process or the next one,
   * listens to the same call. Drawn when absent.
   */
  attempt?: string | undefined;
  /** The call's id, distinct within the session. Absent: the attempt. */
  callId?: string | undefined;
  /** The agent framework's own id of the tool call; recorded beside the call. */
  correlation?: string | undefined;
  /** Stops listening: ask rejects with the signal's reason, and the question stays as it is. */
  signal?: AbortSignal | undefined;
  /** With it, abort also ends the call as pending; a later answer is then a reply. */
  endOnAbort?: boolean | undefined;
  /** Told once the question is durable, and again whenever it was listened to anew. */
  onWaiting?: ((waiting: Waiting) => void) | undefined;
}

/** The question is asked and durable, and nobody has answered yet. */
export interface Waiting {
  callId: string;
  /** Listens again from another process. */
  attempt: string;
  /** What is left of the foreground wait in milliseconds; undefined: no deadline. A client that shows the question may hold it. */
  remainingMs: number | undefined;
}

/** A person answered in time. */
export interface Answered {
  outcome: "answered";
  callId: string;
  /** One item per question, in the order received. Items may be skips: see `skipped`. */
  answers: Answer[];
  /** The text of the tool's result, for the model. */
  toolResult: string;
}

/** Nobody answered in time. This is no answer, no skip and no permission; the answer will be a reply. */
export interface Pending {
  outcome: "pending";
  callId: string;
  /** The guidance for the model. */
  message: string;
  /** The text of the tool's result, for the model. */
  toolResult: string;
}

export type AskOutcome = Answered | Pending;

/** What to collect. */
export interface Collect {
  /** The token of an earlier collect whose replies have arrived for good: they are not listed again. */
  after?: string | undefined;
  /** Only the reply to this call, if it has come. */
  callId?: string | undefined;
  /** The agent framework's own id of the tool call that collects. */
  correlation?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** One thing that the model is to read. */
export interface Reply {
  /** Never changes: act once on a message, however often it is listed. */
  messageId: string;
  /** reply: a late answer; result: an answer in time to a request that may have been lost; message: what somebody else said. */
  kind: "reply" | "result" | "message" | (string & {});
  /** The call it answers; empty for a message. */
  callId: string;
  /** What the model reads: of a reply or a result, the questions with their answers as JSON. */
  text: string;
  /** The same, read; undefined for a message. */
  questions: Question[] | undefined;
  answers: Answer[] | undefined;
  /** In host wall milliseconds; 0: not an answer. */
  answeredMs: number;
  /** How often it has been listed, this time included. */
  delivery: number;
  /** It may have been seen before. */
  redelivered: boolean;
}

export interface Collected {
  /** New ones first, then those that were listed before and not acknowledged. */
  replies: Reply[];
  /** Acknowledges this list, as the `after` of a later collect; empty when it is. */
  token: string;
  /** Unacknowledged ones that this list had no room for. */
  more: number;
  /** With callId: open, continued, replied, settled or unknown. */
  state: string;
}

/** Where the session stood when the agent attached. */
export interface Attached {
  created: boolean;
  /** Another root spoke for the session until now; its open waits ended. */
  tookOver: boolean;
  /** How many messages wait for the agent. */
  queued: number;
}

/** Agent is the live root of one session. It is a name and may be made again at any time; get it from Parley.attach. */
export class Agent {
  readonly session: string;
  readonly root: string;
  readonly attached: Attached;
  readonly #node: Connection;

  /** @internal */
  constructor(node: Connection, session: string, root: string, attached: Attached) {
    this.#node = node;
    this.session = session;
    this.root = root;
    this.attached = attached;
  }

  /**
   * Asks and waits for the outcome, whatever happens to connections and nodes
   * meanwhile: it is one call with one attempt, and its deadline does not move.
   */
  async ask(ask: Ask): Promise<AskOutcome> {
    const attempt = ask.attempt ?? newId("q");
    const request = encodable(AskRequestSchema, {
      session: this.session,
      root: this.root,
      attempt,
      callId: ask.callId ?? attempt,
      questions: questionsToWire(ask.questions ?? []),
      arguments: ask.arguments ?? "",
      resume: ask.questions === undefined && ask.arguments === undefined,
      receipt: true,
      correlation: ask.correlation ?? "",
      ...(ask.timeoutSeconds !== undefined && { timeoutSeconds: seconds(ask.timeoutSeconds) }),
    });
    let response: AskResponse;
    try {
      response = await this.#listen(request, ask);
    } catch (reason) {
      if (ask.signal?.aborted && ask.endOnAbort) await this.#endForeground(request);
      if (reason instanceof ParleyError && reason.temporary) reason.retryKey = attempt;
      throw reason;
    }
    const outcome = outcomeOf(response);
    await this.#acknowledge(outcome.callId);
    return outcome;
  }

  /** Sends the ask until it has an outcome. Once it is durable, its attempt is enough to listen again. */
  async #listen(request: AskRequest, { signal, onWaiting }: Ask): Promise<AskResponse> {
    const { session, root, attempt, callId } = request;
    const again = encodable(AskRequestSchema, { session, root, attempt, callId, resume: true, receipt: true });
    let send = { ...request, holdMs: 1n }; // at first, and after a cut, only until the node has it: then it can be told
    for (;;) {
      const started = performance.now();
      const ask = async (options: CallOptions) => {
        try {
          return await this.#node.questions.ask(send, options);
        } catch (reason) {
          send.holdMs = 1n;
          throw reason;
        }
      };
      const response = await this.#node.persist("wait", signal, ask, holdMs);
      if (response.outcome.case !== "waiting") return response;
      const { deadlineMs, remainingMs } = response.outcome.value;
      if (send.holdMs === 1n) {
        onWaiting?.({ callId: response.callId, attempt, remainingMs: deadlineMs === 0n ? undefined : Number(remainingMs) });
      } else if (performance.now() - started < 200) {
        await sleep(200, signal); // a node that holds nothing is not hammered
      }
      send = { ...again, holdMs: BigInt(holdMs) };
    }
  }

  /** Nothing depends on it: a call that stays open ends at its deadline. */
  async #endForeground({ session, callId, attempt }: AskRequest): Promise<void> {
    const request = encodable(EndForegroundRequestSchema, { session, callId, attempt, reason: "the caller gave up" });
    await this.#node.questions.endForeground(request, { timeoutMs: courtesyMs }).catch(() => undefined);
  }

  /** Unheard, the result is listed by collect, as one that may have been seen. */
  async #acknowledge(callId: string): Promise<void> {
    const request = encodable(AcknowledgeRequestSchema, { session: this.session, callId });
    await this.#node.inbox.acknowledge(request, { timeoutMs: courtesyMs }).catch(() => undefined);
  }

  /**
   * Takes what waits into the history and lists it. Everything is listed again
   * until its token came back as `after`. A loop collects before each turn of its model.
   */
  async collect(what: Collect = {}): Promise<Collected> {
    return await this.#collect(what, "prompt");
  }

  async #collect({ after, callId, correlation, signal }: Collect, patience: Patience): Promise<Collected> {
    const request = encodable(CollectRepliesRequestSchema, {
      session: this.session,
      root: this.root,
      after: after ?? "",
      callId: callId ?? "",
      correlation: correlation ?? "",
    });
    const response = await this.#node.persist(patience, signal, (options) => this.#node.inbox.collectReplies(request, options));
    return { replies: response.replies.map(replyOf), token: response.token, more: response.more, state: response.state };
  }

  /**
   * Yields replies as they come, until the signal aborts, which throws its
   * reason. Replies are acknowledged when the loop comes back for more: leaving
   * it in the middle leaves them to be listed again, as redelivered.
   */
  async *replies({ signal }: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<Reply, never, undefined> {
    let after = "";
    for (;;) {
      const { replies, token } = await this.#collect({ after, signal }, "wait");
      after = token;
      yield* replies;
      // After a hold it looks again in any case: results of lost requests wake nobody.
      if (replies.length === 0) await this.#anyWithinHold(signal);
    }
  }

  /** Returns once something waits that was never collected: what an idle loop does before its next turn. */
  async awaitReplies({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    while (!(await this.#anyWithinHold(signal)));
  }

  async #anyWithinHold(signal: AbortSignal | undefined): Promise<boolean> {
    const request = encodable(AwaitInboxRequestSchema, { session: this.session, root: this.root, holdMs: BigInt(holdMs) });
    const started = performance.now();
    const { queued } = await this.#node.persist("wait", signal, (options) => this.#node.inbox.awaitInbox(request, options), holdMs);
    if (queued === 0 && performance.now() - started < 200) await sleep(200, signal); // a node that holds nothing is not hammered
    return queued > 0;
  }

  /** Takes a question back, open or continued. Returns how the call ended: an answer that came first has won. */
  async withdraw(callId: string, reason = "", { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Settlement> {
    const request = encodable(WithdrawQuestionRequestSchema, { session: this.session, root: this.root, callId, by: this.root, reason });
    const response = await this.#node.persist("prompt", signal, (options) => this.#node.questions.withdrawQuestion(request, options));
    return settlementOf(response.settlement);
  }
}

function outcomeOf({ callId, outcome, result }: AskResponse): AskOutcome {
  switch (outcome.case) {
    case "answered":
      return { outcome: "answered", callId, answers: outcome.value.answers.map(answerOf), toolResult: result };
    case "pending":
      return { outcome: "pending", callId, message: outcome.value.message, toolResult: result };
    default:
      throw new ParleyError({ code: "BUG", text: `the node answered an ask with ${outcome.case ?? "nothing"}`, remedy: "the node is of another version" });
  }
}

function replyOf(r: CollectedReply): Reply {
  return {
    messageId: r.messageId,
    kind: r.kind,
    callId: r.callId,
    text: r.text,
    ...batchOf(r),
    answeredMs: Number(r.answeredMs),
    delivery: r.delivery,
    redelivered: r.redelivered,
  };
}

/** A steered message may look like an answer; only its kind tells. */
function batchOf({ kind, text }: CollectedReply): Pick<Reply, "questions" | "answers"> {
  const none = { questions: undefined, answers: undefined };
  if (kind === "message") return none;
  try {
    const { questions, answers } = JSON.parse(text) as { questions?: unknown; answers?: unknown };
    return Array.isArray(answers) ? { questions: (questions ?? []) as Question[], answers: answers as Answer[] } : none;
  } catch {
    return none;
  }
}

function seconds(n: number): bigint {
  if (Number.isSafeInteger(n)) return whole("timeoutSeconds", n);
  throw new ParleyError({ code: "BAD_TIMEOUT", text: `timeoutSeconds is ${n}; it must be -1 or a whole number`, remedy: "give 1 to 2147483 seconds, or -1 for no deadline" });
}
