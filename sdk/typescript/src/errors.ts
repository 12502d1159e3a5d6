import { Code, ConnectError } from "@connectrpc/connect";

import { RefusalSchema } from "./gen/command_pb.js";
import { settlementOf, type Settlement } from "./types.js";

/** What a {@link ParleyError} is made of. */
export interface Trouble {
  code: string;
  text: string;
  remedy?: string | undefined;
  winner?: Settlement | undefined;
  /** The same request may be sent again. */
  temporary?: boolean | undefined;
  cause?: unknown;
}

/**
 * ParleyError is a refusal of the node, or a fault on the way to it. Branch on
 * `code`, which is stable; `text` and `remedy` are for people and models.
 */
export class ParleyError extends Error {
  override readonly name = "ParleyError";
  /** A code of docs/errors.md, such as SETTLED or INVALID_ARGS. */
  readonly code: string;
  /** What happened, with names and values. */
  readonly text: string;
  /** What to do next. */
  readonly remedy: string;
  /** Who won, when somebody else was first (SETTLED, REPLY_QUEUED). */
  readonly winner: Settlement | undefined;
  /** The world failed, not the request: the same one may be sent again. */
  readonly temporary: boolean;
  /**
   * Set when it is not known whether the request took effect: pass it as
   * `attempt` (ask) or `submissionId` (submit), and it takes effect once.
   */
  retryKey: string | undefined;

  constructor(trouble: Trouble) {
    const { code, text, remedy = "" } = trouble;
    super(remedy === "" ? `${code}: ${text}` : `${code}: ${text} (${remedy})`, { cause: trouble.cause });
    this.code = code;
    this.text = text;
    this.remedy = remedy;
    this.winner = trouble.winner;
    this.temporary = trouble.temporary ?? false;
  }
}

/** Reads what went wrong out of whatever a request threw. */
export function parleyError(reason: unknown): ParleyError {
  if (reason instanceof ParleyError) return reason;
  const error = ConnectError.from(reason);
  const refusal = error.findDetails(RefusalSchema)[0];
  if (refusal !== undefined) {
    return new ParleyError({
      code: refusal.code,
      text: refusal.text,
      remedy: refusal.remedy,
      winner: refusal.winner && settlementOf(refusal.winner),
      temporary: error.code === Code.Unavailable,
      cause: error,
    });
  }
  // No node said it. Requests are encoded before they are sent (see encodable),
  // so what has a cause broke on its way.
  if (error.cause !== undefined || lost.has(error.code)) {
    return new ParleyError({
      code: "UNAVAILABLE",
      text: `the node does not answer: ${said(error)}`,
      remedy: "check that a node listens at this url; the same request may be sent again",
      temporary: true,
      cause: error,
    });
  }
  const [code, remedy] = unsaid[error.code] ?? [Code[error.code].toUpperCase(), "the node's log says more"];
  return new ParleyError({ code, text: said(error), remedy, cause: error });
}

const lost = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Canceled]);

// What answers in place of a node, such as a proxy, says it in HTTP.
const unsaid: Partial<Record<Code, [code: string, remedy: string]>> = {
  [Code.Unauthenticated]: ["UNAUTHENTICATED", "give the node's token"],
  [Code.PermissionDenied]: ["FOREIGN_ORIGIN", "use the node's own address, or let the node allow this origin"],
  [Code.Unimplemented]: ["BAD_REQUEST", "check the url; or the node is of another version and does not know this request"],
  [Code.InvalidArgument]: ["BAD_REQUEST", "correct the request"],
};

/** The error's own words, and the system's below them ("fetch failed" alone says little). */
function said(error: ConnectError): string {
  const words = [error.rawMessage];
  for (let at = error.cause; at instanceof Error; at = at.cause) {
    if (!words.some((w) => w.includes((at as Error).message))) words.push(at.message);
  }
  return words.filter((w) => w !== "").join(": ");
}
