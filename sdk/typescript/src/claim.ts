import { encodable, type Connection } from "./connection.js";
import { ParleyError, parleyError } from "./errors.js";
import { DelegateRequestSchema, ExpireRequestSchema } from "./gen/command_pb.js";
import { AttachWaitRequestSchema, ReleaseWaitRequestSchema, type AttachWaitResponse } from "./gen/service_pb.js";

/** Why a claim ended. */
export interface ClaimEnd {
  /** over: the wait has ended; released: this client let go of it, or passed it on; failed: see error. */
  reason: "over" | "released" | "failed";
  error?: ParleyError;
}

export interface ClaimOptions {
  /** One name for all watches and claims of one client. */
  client?: string | undefined;
  /** Releases the claim. */
  signal?: AbortSignal | undefined;
}

/**
 * Claim holds a question's deadline while a person looks at it. It is opened
 * again by itself after a cut; let it go with release, or by submitting.
 */
export class Claim {
  readonly session: string;
  readonly callId: string;
  /** Settles when the claim has ended; never rejects. */
  readonly ended: Promise<ClaimEnd>;
  readonly #node: Connection;
  readonly #client: string;
  readonly #stop = new AbortController();
  #frame: AttachWaitResponse | undefined;
  #released = false;
  #leaving: Promise<unknown> = Promise.resolve();
  #opened: () => void = () => undefined;

  private constructor(node: Connection, session: string, callId: string, { client = "", signal }: ClaimOptions) {
    this.#node = node;
    this.session = session;
    this.callId = callId;
    this.#client = client;
    const release = () => void this.release();
    signal?.addEventListener("abort", release, { once: true });
    this.ended = this.#hold().finally(() => signal?.removeEventListener("abort", release));
  }

  /** @internal */
  static async open(node: Connection, session: string, callId: string, options: ClaimOptions): Promise<Claim | undefined> {
    options.signal?.throwIfAborted();
    const claim = new Claim(node, session, callId, options);
    const opened = new Promise<void>((resolve) => (claim.#opened = resolve));
    const end = await Promise.race([opened, claim.ended]);
    options.signal?.throwIfAborted();
    if (end?.error !== undefined) throw end.error;
    return claim.#frame === undefined ? undefined : claim;
  }

  /** The claim's name at the node; another one after a cut. */
  get name(): string {
    return this.#frame?.claim ?? "";
  }

  /** What was left of the wait when the claim opened, in milliseconds; undefined: no deadline. */
  get remainingMs(): number | undefined {
    return this.#frame === undefined || this.#frame.never ? undefined : Number(this.#frame.remainingMs);
  }

  /** Lets the deadline run again. Releasing a claim that has ended is no error. */
  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    try {
      const { session, callId, name } = this;
      if (name === "") return;
      const request = encodable(ReleaseWaitRequestSchema, { session, callId, claim: name });
      await this.#node.persist("prompt", undefined, (options) => this.#node.questions.releaseWait(request, options));
    } catch {
      // The stream's end below lets it go too, after the node's claim_grace.
    } finally {
      this.#stop.abort();
    }
  }

  /** The client's own countdown has ended. True: that ended the wait; false: other claims hold it. */
  expire(by = ""): Promise<boolean> {
    const { session, callId, name } = this;
    const request = encodable(ExpireRequestSchema, { session, callId, claim: name, by });
    return this.#leave(() => this.#node.persist("prompt", undefined, (options) => this.#node.questions.expire(request, options)));
  }

  /** Passes the question on. True: nobody was left, and a blocking question ended. */
  delegate(by = ""): Promise<boolean> {
    const { session, callId, name } = this;
    const request = encodable(DelegateRequestSchema, { session, callId, claim: name, by });
    return this.#leave(() => this.#node.persist("prompt", undefined, (options) => this.#node.questions.delegate(request, options)));
  }

  /** Leaves the wait to others, unless that ends it. */
  #leave(command: () => Promise<{ settled: boolean }>): Promise<boolean> {
    const settled = command().then((response) => {
      if (!response.settled) this.#released = true;
      return response.settled;
    });
    this.#leaving = Promise.allSettled([this.#leaving, settled]);
    return settled;
  }

  /** Whether the client let go. The stream's end may overtake the response that says so. */
  async #left(): Promise<boolean> {
    await this.#leaving;
    return this.#released;
  }

  async #hold(): Promise<ClaimEnd> {
    const { session, callId } = this;
    const retry = this.#node.retry("endless", this.#stop.signal);
    try {
      const request = encodable(AttachWaitRequestSchema, { session, callId, client: this.#client });
      for (;;) {
        try {
          for await (const frame of this.#node.questions.attachWait(request, { signal: this.#stop.signal })) {
            this.#frame = frame;
            retry.reset();
            this.#opened();
          }
          return { reason: (await this.#left()) ? "released" : "over" };
        } catch (reason) {
          if (await this.#left()) return { reason: "released" };
          await retry.after(reason);
        }
      }
    } catch (reason) {
      return this.#released ? { reason: "released" } : { reason: "failed", error: parleyError(reason) };
    }
  }
}
