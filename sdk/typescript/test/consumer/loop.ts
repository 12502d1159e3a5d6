// A program of somebody else's: it is compiled under each resolution of modules, and not run.
import { anthropicTool, askUserQuestionTool, Parley, runTool, vercelTool, type Reply } from "@parley/client";
import { AskRequestSchema, QuestionService } from "@parley/client/protocol";

type Message = { role: string; content: string };
type Call = { id: string; name: string; input: unknown };

export async function loop(model: (messages: Message[], tools: unknown[]) => Promise<{ text: string; calls: Call[] }>): Promise<void> {
  const parley = new Parley({ url: "http://127.0.0.1:7410", token: undefined });
  const agent = await parley.attach("demo", "my-agent");
  const tools = [askUserQuestionTool(agent)];
  const messages: Message[] = [];
  for (let after = ""; ; ) {
    const late = await agent.collect({ after });
    messages.push(...late.replies.map((r: Reply) => ({ role: "user", content: r.text })));
    after = late.token;
    const turn = await model(messages, tools.map(anthropicTool));
    for (const call of turn.calls) messages.push({ role: "tool", content: (await runTool(tools, call.name, call.input)).text });
  }
}

export async function outcomes(parley: Parley): Promise<string[]> {
  const agent = await parley.attach("demo", "my-agent");
  const outcome = await agent.ask({ questions: [{ id: "ship", question: "Ship it?", options: ["Yes", { label: "No" }] }], timeoutSeconds: 60 });
  // @ts-expect-error nobody reads answers before asking whether there are any
  outcome.answers;
  if (outcome.outcome === "pending") {
    // @ts-expect-error a pending outcome has none
    outcome.answers;
    return [outcome.message];
  }
  for await (const { question } of parley.watch()) if (question) return question.questions.map((q) => q.question);
  for await (const reply of agent.replies()) return [reply.text];
  return outcome.answers.flatMap((a) => a.selected);
}

export const names = [AskRequestSchema.typeName, QuestionService.typeName, typeof vercelTool];
