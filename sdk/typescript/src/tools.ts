import type { Agent, Reply } from "./agent.js";
import { ParleyError } from "./errors.js";

/** A JSON schema, as agent SDKs take it. */
export type JsonSchema = Record<string, unknown>;

export interface ExecuteOptions {
  /** Ends the tool call as pending; the question goes on. */
  signal?: AbortSignal | undefined;
  /** The framework's own id of this tool call; recorded beside ours. */
  toolCallId?: string | undefined;
  /** The key of repetition: see Ask.attempt. Give one that is kept with the tool call, and a restarted agent listens to the same question. */
  attempt?: string | undefined;
}

/** A tool as every agent SDK can be given it. */
export interface AgentTool {
  name: string;
  description: string;
  parameters: JsonSchema;
  /**
   * Takes the model's arguments, as JSON text or parsed, and returns the text
   * of the tool's result. A refusal is a ParleyError, whose message is for the model.
   */
  execute(args: unknown, options?: ExecuteOptions): Promise<string>;
}

const string = (description: string): JsonSchema => ({ type: "string", description });

/** ask_user_question: asks a person, and returns the answers, or that they are pending. */
export function askUserQuestionTool(agent: Agent, { timeoutSeconds }: { timeoutSeconds?: number | undefined } = {}): AgentTool {
  const standard = timeoutSeconds === undefined ? "the node's own limit" : timeoutSeconds === -1 ? "no limit" : `${timeoutSeconds} seconds`;
  const option = {
    type: "object",
    properties: {
      label: string('Short text of the choice; the answer quotes it. Put a recommended choice first and end its label with "(Recommended)".'),
      description: string("What choosing it means."),
    },
    required: ["label"],
    additionalProperties: true,
  };
  const question = {
    type: "object",
    properties: {
      id: string("A stable id, distinct within the call."),
      question: string("The question, in the user's own terms."),
      header: string("A very short title."),
      options: { type: "array", items: option, description: "Choices, if there are any. The user can always write something else." },
      multi_select: { type: "boolean", description: "Whether several choices may be taken together." },
    },
    required: ["id", "question"],
    additionalProperties: true,
  };
  return {
    name: "ask_user_question",
    description:
      "Ask the user brief, self-contained questions in the user's terms, each with a distinct stable id. " +
      "A question the user skips comes back as an answer with an empty selection and no custom text. " +
      "If no answers come in time the result is pending: the user can still answer, and the answer will reach you as a later message. " +
      "Pending is neither a skip nor permission.",
    parameters: {
      type: "object",
      properties: {
        questions: { type: "array", items: question },
        timeout: {
          type: "integer",
          description: `Seconds to wait before the result is pending; ${standard} when left out. Use -1 only for answers you cannot go on without.`,
        },
      },
      required: ["questions"],
    },
    async execute(args, { signal, toolCallId, attempt } = {}) {
      const given = parsed(args);
      if (isRecord(given) && given["timeout"] === undefined && timeoutSeconds !== undefined) given["timeout"] = timeoutSeconds;
      const { toolResult } = await agent.ask({
        arguments: JSON.stringify(lenient(given)),
        correlation: toolCallId,
        attempt,
        signal,
        endOnAbort: true,
      });
      return toolResult;
    },
  };
}

/** collect_replies: the late answers, for a loop that leaves collecting to its model. */
export function collectRepliesTool(agent: Agent): AgentTool {
  return {
    name: "collect_replies",
    description:
      "Collect the user's answers to questions that were pending. Each reply has an id that never changes: act once on a reply, however often it is listed. " +
      "Pass the token of the last result as `after` once you have acted on its replies; until then they are listed again.",
    parameters: {
      type: "object",
      properties: { after: string("The token of an earlier result on whose replies you have acted.") },
      additionalProperties: true,
    },
    async execute(args, { signal, toolCallId } = {}) {
      const given = parsed(args);
      const after = isRecord(given) && typeof given["after"] === "string" ? given["after"] : "";
      const { replies, token, more } = await agent.collect({ after, correlation: toolCallId, signal });
      return JSON.stringify({
        replies: replies.map(itemOf),
        ...(token !== "" && { token }),
        ...(more > 0 && { more }),
        message:
          replies.length === 0
            ? "Nothing waits."
            : "Once you have acted on these, pass the token as `after` in your next collect_replies; until then they are listed again." +
              (more > 0 ? ` ${more} more after that.` : ""),
      });
    },
  };
}

/** One reply as the model reads it, in the shape of the MCP tool of the same name. */
function itemOf(r: Reply) {
  return {
    reply_id: r.messageId,
    kind: r.kind,
    ...(r.callId !== "" && { callId: r.callId }),
    ...(r.answers === undefined ? { text: r.text } : { questions: r.questions, answers: r.answers }),
    ...(r.answeredMs > 0 && { answered_at: new Date(r.answeredMs).toISOString() }),
    delivery: r.delivery,
    redelivered: r.redelivered,
    ...(r.redelivered && { note: `You may have seen reply ${r.messageId} before. If you have acted on it, do not act again.` }),
  };
}

/** The Vercel AI SDK: `tools: { ask_user_question: vercelTool(tool, jsonSchema) }`, with `jsonSchema` of the package ai. */
export function vercelTool<S>(tool: AgentTool, jsonSchema: (schema: JsonSchema) => S) {
  return {
    description: tool.description,
    inputSchema: jsonSchema(tool.parameters),
    execute: (args: unknown, options: { abortSignal?: AbortSignal | undefined; toolCallId?: string | undefined } = {}) =>
      tool.execute(args, { signal: options.abortSignal, toolCallId: options.toolCallId }),
  };
}

/** A function tool of OpenAI's chat completions. */
export function openAIChatTool({ name, description, parameters }: AgentTool) {
  return { type: "function" as const, function: { name, description, parameters } };
}

/** A function tool of OpenAI's responses. Not strict: parameters may be left out. */
export function openAIResponsesTool({ name, description, parameters }: AgentTool) {
  return { type: "function" as const, name, description, parameters, strict: false as const };
}

/** A client tool of Anthropic's messages. */
export function anthropicTool({ name, description, parameters }: AgentTool) {
  return { name, description, input_schema: parameters as JsonSchema & { type: "object" } };
}

/** What a tool call gave: text for the model, and whether it is an error. */
export interface ToolResult {
  text: string;
  isError: boolean;
}

/**
 * Runs one tool call of a model, for a loop of your own. What the model can
 * correct becomes an error text; aborts and faults of the world are thrown.
 */
export async function runTool(tools: readonly AgentTool[], name: string, args: unknown, options?: ExecuteOptions): Promise<ToolResult> {
  const tool = tools.find((t) => t.name === name);
  if (tool === undefined) return { text: `Error: there is no tool ${name}`, isError: true };
  try {
    return { text: await tool.execute(args, options), isError: false };
  } catch (reason) {
    if (reason instanceof ParleyError && !reason.temporary) return { text: `Error: ${reason.message}`, isError: true };
    throw reason;
  }
}

/** Models send text where objects are wanted; what is no JSON is the node's to refuse. */
function parsed(args: unknown): unknown {
  if (typeof args !== "string") return isRecord(args) ? { ...args } : args;
  try {
    return JSON.parse(args);
  } catch {
    throw new ParleyError({ code: "INVALID_ARGS", text: "the arguments are not JSON", remedy: 'send {"questions": [{"id": "q1", "question": "…"}]}' });
  }
}

/**
 * Accepts what models really send and can mean one thing only: lists as JSON
 * text, options as plain text, other spellings of multi_select, a question
 * without an id. Everything else goes as it is, and is refused by the node with its path.
 */
function lenient(args: unknown): unknown {
  if (!isRecord(args)) return args;
  const questions = list(args["questions"]);
  if (!Array.isArray(questions)) return args;
  return { ...args, questions: questions.map(lenientQuestion) };
}

function lenientQuestion(question: unknown, at: number, all: unknown[]): unknown {
  const q = typeof question === "string" ? { question } : question;
  if (!isRecord(q)) return q;
  const { multiSelect, multiple, ...rest } = q;
  const multi = rest["multi_select"] ?? multiSelect ?? multiple;
  const options = list(rest["options"]);
  return {
    ...rest,
    ...(rest["id"] === undefined && { id: freeId(at, all) }),
    ...(options !== undefined && options !== null && { options: Array.isArray(options) ? options.map((o) => (typeof o === "string" ? { label: o } : o)) : options }),
    ...(multi !== undefined && { multi_select: multi }),
  };
}

/** q1, q2, … by place, and never the id that another question has. */
function freeId(at: number, all: unknown[]): string {
  const taken = new Set(all.map((q) => (isRecord(q) ? q["id"] : undefined)));
  let id = `q${at + 1}`;
  while (taken.has(id)) id += "_";
  return id;
}

function list(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
