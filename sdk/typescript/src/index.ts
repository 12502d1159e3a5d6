/**
 * `@parley/client`: durable human questions for agents, over Connect.
 *
 * It decides how a request is sent and sent again; never what becomes of a
 * question, which is the node's alone.
 */
export { Parley, type AttachOptions, type Filter, type Page, type Submission, type Submitted } from "./parley.js";
export { Agent, type Answered, type Ask, type AskOutcome, type Attached, type Collect, type Collected, type Pending, type Reply, type Waiting } from "./agent.js";
export { Claim, type ClaimEnd, type ClaimOptions } from "./claim.js";
export { type ParleyOptions } from "./connection.js";
export { ParleyError } from "./errors.js";
export {
  anthropicTool,
  askUserQuestionTool,
  collectRepliesTool,
  openAIChatTool,
  openAIResponsesTool,
  runTool,
  vercelTool,
  type AgentTool,
  type ExecuteOptions,
  type JsonSchema,
  type ToolResult,
} from "./tools.js";
export { skipped, type Answer, type Option, type Question, type QuestionCall, type Settlement } from "./types.js";
export { type Change, type WatchOptions } from "./watch.js";
