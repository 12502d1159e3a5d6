import type * as wire from "./gen/command_pb.js";
import type { QuestionRow } from "./gen/service_pb.js";

/** One choice of a question. The answer carries its label. */
export interface Option {
  label: string;
  description?: string | undefined;
}

/** One question of a call. Without options it is answered in free text. */
export interface Question {
  /** Distinct within the call; the answer carries it. */
  id: string;
  question: string;
  header?: string | undefined;
  options?: readonly (Option | string)[] | undefined;
  multiSelect?: boolean | undefined;
}

/** The answer to one question. A skip has no selection and no custom text. */
export interface Answer {
  id: string;
  selected: string[];
  custom?: string;
}

/** Whether the person chose not to answer. A skip decides nothing and permits nothing. */
export function skipped(answer: Answer): boolean {
  return answer.selected.length === 0 && answer.custom === undefined;
}

/** How a call, or one submission to it, ended. */
export interface Settlement {
  /** answered, skipped, pending, queued, withdrawn, aborted, cancelled, … */
  outcome: string;
  /** Who acted, in words for people, and through which door. */
  by: string;
  door: string;
  submissionId: string;
  /** The queued reply. */
  messageId: string;
  reason: string;
}

/** One question call as people see it. */
export interface QuestionCall {
  session: string;
  callId: string;
  /** open: its call still waits; continued: an answer will be a reply; replied: one is queued; settled. */
  state: "open" | "continued" | "replied" | "settled" | (string & {});
  questions: { id: string; question: string; header: string; options: { label: string; description: string }[]; multiSelect: boolean }[];
  /** The foreground deadline in the host's wall milliseconds; undefined: none. */
  deadlineMs: number | undefined;
  /** What is left until then by the host's clock, in milliseconds. */
  remainingMs: number | undefined;
  askedMs: number;
  blocking: boolean;
  /** A legacy call, which has no late path. */
  unkeyed: boolean;
  /** Pass it to submit: an answer to what the call asked before it was asked again is then refused. */
  callSeq: number;
  settlement: Settlement | undefined;
  answers: Answer[];
  /** Why its text cannot be shown, when its session's log is damaged. */
  trouble: { code: string; text: string; remedy: string } | undefined;
}

export function questionsToWire(questions: readonly Question[]) {
  return questions.map((q) => ({
    id: q.id,
    question: q.question,
    header: q.header ?? "",
    options: (q.options ?? []).map((o) => (typeof o === "string" ? { label: o } : { label: o.label, description: o.description ?? "" })),
    multiSelect: q.multiSelect ?? false,
  }));
}

export function answersToWire(answers: readonly Answer[]) {
  return answers.map((a) => ({ id: a.id, selected: [...a.selected], ...(a.custom !== undefined && { custom: a.custom }) }));
}

export function answerOf(a: wire.Answer): Answer {
  return { id: a.id, selected: a.selected, ...(a.custom !== undefined && { custom: a.custom }) };
}

export function settlementOf(s: wire.Settlement | undefined): Settlement {
  return {
    outcome: s?.outcome ?? "",
    by: s?.by ?? "",
    door: s?.door ?? "",
    submissionId: s?.submissionId ?? "",
    messageId: s?.messageId ?? "",
    reason: s?.reason ?? "",
  };
}

export function callOf(row: QuestionRow): QuestionCall {
  const never = row.deadlineMs === 0n;
  return {
    session: row.session,
    callId: row.callId,
    state: row.state,
    questions: row.questions.map((q) => ({
      id: q.id,
      question: q.question,
      header: q.header,
      options: q.options.map((o) => ({ label: o.label, description: o.description })),
      multiSelect: q.multiSelect,
    })),
    deadlineMs: never ? undefined : Number(row.deadlineMs),
    remainingMs: never ? undefined : Number(row.remainingMs),
    askedMs: Number(row.askedMs),
    blocking: row.blocking,
    unkeyed: row.unkeyed,
    callSeq: Number(row.callSeq),
    settlement: row.settlement && settlementOf(row.settlement),
    answers: row.answers.map(answerOf),
    trouble: row.trouble && { code: row.trouble.code, text: row.trouble.text, remedy: row.trouble.remedy },
  };
}
