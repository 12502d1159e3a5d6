import { encodable, whole, type Connection } from "./connection.js";
import { ParleyError } from "./errors.js";
import { WatchQuestionsRequestSchema, type WatchQuestionsResponse } from "./gen/service_pb.js";
import { callOf, type QuestionCall } from "./types.js";

/** One step of a watch. */
export interface Change {
  /** The call that is new or has changed; undefined on the step that says live. */
  question: QuestionCall | undefined;
  /** Where a watch goes on after this step; 0 within the starting list, which is repeated whole. */
  cursor: number;
  /** True once, when the starting list, or what was missed since the cursor, is complete. */
  live: boolean;
}

export interface WatchOptions {
  /** Only this session's questions; absent: everybody's. */
  session?: string | undefined;
  /** Where to go on: the cursor of a change, or of a list. 0 or absent starts with every active question. */
  cursor?: number | undefined;
  /** One name for all watches and claims of one client. */
  client?: string | undefined;
  /** Ends the watch, which throws its reason. */
  signal?: AbortSignal | undefined;
}

const silenceMs = 60_000; // until the node has told its heartbeat

/** Yields changes without gap or repeat, across cuts of the connection and restarts of the node. */
export async function* watch(node: Connection, options: WatchOptions): AsyncGenerator<Change, never, undefined> {
  const { session = "", client = "", signal } = options;
  const retry = node.retry("endless", signal);
  let cursor = options.cursor ?? 0;
  let told = false; // that it is live
  for (;;) {
    signal?.throwIfAborted();
    const request = encodable(WatchQuestionsRequestSchema, { session, client, cursor: whole("cursor", cursor) });
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal?.addEventListener("abort", abort, { once: true });
    const frames = node.questions.watchQuestions(request, { signal: stop.signal })[Symbol.asyncIterator]();
    let start: WatchQuestionsResponse[] = []; // a starting list that was cut off is thrown away: it may show what has ended since
    let silence = silenceMs;
    let live = false;
    try {
      for (;;) {
        let frame: WatchQuestionsResponse;
        try {
          frame = await within(silence, stop, frames);
        } catch (reason) {
          await retry.after(reason);
          break;
        }
        retry.reset();
        if (frame.heartbeatMs > 0n) silence = 2 * Number(frame.heartbeatMs);
        if (!live && !frame.live && frame.cursor === 0n) {
          start.push(frame);
          continue;
        }
        live ||= frame.live;
        for (const { question } of start) if (question) yield { question: callOf(question), cursor: 0, live: false };
        start = [];
        cursor = Number(frame.cursor);
        if (frame.question) yield { question: callOf(frame.question), cursor, live: false };
        if (frame.live && !told) {
          told = true;
          yield { question: undefined, cursor, live: true };
        }
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      stop.abort();
    }
  }
}

/** Reads a frame; a stream that stays silent for longer is as good as cut. */
async function within(ms: number, stop: AbortController, frames: AsyncIterator<WatchQuestionsResponse>): Promise<WatchQuestionsResponse> {
  const timer = setTimeout(() => stop.abort(), ms);
  try {
    const { done, value } = await frames.next();
    if (!done) return value;
  } finally {
    clearTimeout(timer);
  }
  throw new ParleyError({ code: "UNAVAILABLE", text: "the node ended the watch", temporary: true });
}
