import { create, toJsonString, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { createClient, type CallOptions, type Client, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

import { ParleyError, parleyError } from "./errors.js";
import { InboxService, QueryService, QuestionService, SessionService } from "./gen/service_pb.js";

/** How long the node may hold one request before it is repeated, in milliseconds. */
export const holdMs = 20_000;

const replyMs = 30_000; // for what the node answers at once
const pauseFirstMs = 200;
const pauseMaxMs = 3_000;
const promptMs = 10_000; // how long a request that does not wait for a person is repeated
const waitMs = 300_000; // and one that does

/** What a {@link Parley} client is made with. */
export interface ParleyOptions {
  /** The node's address, such as http://127.0.0.1:7410. */
  url: string;
  /** The node's bearer token, when it wants one. */
  token?: string | undefined;
  /**
   * How long ask and replies go on while no node answers, in milliseconds;
   * default five minutes. Then they fail with UNAVAILABLE. Watches and claims
   * go on until they are told to stop, other requests for ten seconds.
   */
  unreachableMs?: number | undefined;
  /** Told of every failure after which a request is repeated. */
  onRetry?: ((error: ParleyError, delayMs: number) => void) | undefined;
  /** In place of the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** In place of Connect over fetch; url and token are then the transport's. */
  transport?: Transport | undefined;
}

/** How long a request is repeated: see ParleyOptions.unreachableMs. */
export type Patience = "prompt" | "wait" | "endless";

/** Connection sends requests to one node, and sends them again. */
export class Connection {
  readonly sessions: Client<typeof SessionService>;
  readonly questions: Client<typeof QuestionService>;
  readonly inbox: Client<typeof InboxService>;
  readonly past: Client<typeof QueryService>;
  readonly #options: ParleyOptions;

  constructor(options: ParleyOptions) {
    this.#options = options;
    const transport = options.transport ?? connectTransport(options);
    this.sessions = createClient(SessionService, transport);
    this.questions = createClient(QuestionService, transport);
    this.inbox = createClient(InboxService, transport);
    this.past = createClient(QueryService, transport);
  }

  /**
   * Sends an idempotent request until a node has answered it. It gives up when
   * the signal aborts, with its reason, and when its patience has ended.
   */
  async persist<T>(patience: Patience, signal: AbortSignal | undefined, send: (options: CallOptions) => Promise<T>, heldMs = 0): Promise<T> {
    const retry = this.retry(patience, signal);
    for (;;) {
      signal?.throwIfAborted();
      try {
        return await send({ timeoutMs: heldMs + replyMs, ...(signal && { signal }) });
      } catch (reason) {
        await retry.after(reason);
      }
    }
  }

  retry(patience: Patience, signal: AbortSignal | undefined): Retry {
    const limit = { prompt: promptMs, wait: this.#options.unreachableMs ?? waitMs, endless: Infinity }[patience];
    return new Retry(limit, signal, this.#options.onRetry);
  }
}

/** Retry decides whether and when a request that failed is sent again. */
export class Retry {
  #tries = 0;
  #since: number | undefined;
  readonly #limitMs: number;
  readonly #signal: AbortSignal | undefined;
  readonly #told: ParleyOptions["onRetry"];

  constructor(limitMs: number, signal: AbortSignal | undefined, told: ParleyOptions["onRetry"]) {
    this.#limitMs = limitMs;
    this.#signal = signal;
    this.#told = told;
  }

  /** The node has answered. */
  reset(): void {
    this.#tries = 0;
    this.#since = undefined;
  }

  /** Returns once the request may be sent again; throws when it may not. */
  async after(reason: unknown): Promise<void> {
    this.#signal?.throwIfAborted();
    const error = parleyError(reason);
    const now = performance.now();
    this.#since ??= now;
    if (!error.temporary || now - this.#since >= this.#limitMs) throw error;
    const delay = pause(this.#tries++);
    this.#told?.(error, delay);
    await sleep(delay, this.#signal);
  }
}

/** Doubles from 200 ms to 3 s; the upper half is drawn, so that clients of a node that comes back do not arrive together. */
function pause(tries: number): number {
  const full = Math.min(pauseFirstMs * 2 ** Math.min(tries, 10), pauseMaxMs);
  return full / 2 + (Math.random() * full) / 2;
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Makes a request, and refuses one that cannot be written: sent, it would fail
 * like a broken connection and be repeated in vain.
 */
export function encodable<D extends DescMessage>(schema: D, init: MessageInitShape<D>): MessageShape<D> {
  try {
    const message = create(schema, init);
    toJsonString(schema, message);
    return message;
  } catch (cause) {
    throw new ParleyError({
      code: "BAD_REQUEST",
      text: `the request cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
      remedy: "correct the named field",
      cause,
    });
  }
}

/** Whole numbers of the wire are bigints. */
export function whole(field: string, n: number): bigint {
  if (!Number.isSafeInteger(n)) {
    throw new ParleyError({ code: "BAD_REQUEST", text: `${field} is ${n}; it must be a whole number`, remedy: "correct the named field" });
  }
  return BigInt(n);
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/** Draws an id of 100 random bits. */
export function newId(prefix: string): string {
  let id = `${prefix}-`;
  for (const byte of crypto.getRandomValues(new Uint8Array(20))) id += alphabet[byte & 31];
  return id;
}

function connectTransport({ url, token, fetch }: ParleyOptions): Transport {
  let base: URL;
  try {
    base = new URL(url);
  } catch (cause) {
    throw new ParleyError({ code: "BAD_REQUEST", text: `url ${JSON.stringify(url)} is no address`, remedy: "give it as http://host:port", cause });
  }
  if (base.protocol !== "http:" && base.protocol !== "https:") {
    throw new ParleyError({ code: "BAD_REQUEST", text: `url ${JSON.stringify(url)} is not of http or https`, remedy: "give it as http://host:port" });
  }
  if (token !== undefined && /[^\x21-\x7e]/.test(token)) {
    throw new ParleyError({ code: "BAD_REQUEST", text: "the token holds white space or a character that no header carries", remedy: "does it end with a newline?" });
  }
  const bearer: Interceptor = (next) => (request) => {
    if (token) request.header.set("Authorization", `Bearer ${token}`);
    return next(request);
  };
  return createConnectTransport({
    baseUrl: base.href.replace(/\/+$/, ""),
    interceptors: [bearer],
    ...(fetch && { fetch }),
  });
}
