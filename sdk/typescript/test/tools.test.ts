import assert from "node:assert/strict";
import { test } from "node:test";

import {
  anthropicTool,
  askUserQuestionTool,
  collectRepliesTool,
  openAIChatTool,
  openAIResponsesTool,
  runTool,
  vercelTool,
  type Agent,
  type Parley,
} from "@parley/client";

import { Node, shipIt } from "./node.js";

/** Answers every question of a session with its first option, as a person who watches would. */
async function answerAll(parley: Parley, signal: AbortSignal): Promise<void> {
  for await (const { question } of parley.watch({ signal })) {
    if (question?.state !== "open") continue;
    const answers = question.questions.map((q) => ({ id: q.id, selected: q.options.slice(0, 1).map((o) => o.label) }));
    await parley.submit({ session: question.session, callId: question.callId, answers, signal });
  }
}

async function asking(t: Parameters<typeof Node.start>[0]): Promise<{ node: Node; parley: Parley; agent: Agent }> {
  const node = await Node.start(t);
  const parley = node.client();
  const agent = await parley.attach("demo", "agent");
  answerAll(parley, node.over).catch(() => undefined); // the test's end
  return { node, parley, agent };
}

test("the definition is the node's own (Q-020 to Q-023)", async (t) => {
  const { parley, agent } = await asking(t);
  const tool = askUserQuestionTool(agent, { timeoutSeconds: 120 });
  await tool.execute({ questions: [shipIt] });
  const { events } = await parley.rpc.sessions.readLog({ session: "demo" });
  const recorded = events.map((e) => JSON.parse(e)).flatMap((e) => find(e, "tools") ?? []) as { name: string }[];
  const own = recorded.find((t) => t.name === tool.name);
  assert.ok(own, "the log holds no definition");
  assert.deepEqual(JSON.parse(JSON.stringify({ name: tool.name, description: tool.description, parameters: tool.parameters })), own);
});

/** The first value under a key, wherever it is. */
function find(value: unknown, key: string): unknown[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [k, v] of Object.entries(value)) {
    if (k === key && Array.isArray(v)) return v;
    const below = find(v, key);
    if (below) return below;
  }
  return undefined;
}

test("what models really send is asked", async (t) => {
  const { agent } = await asking(t);
  const tool = askUserQuestionTool(agent, { timeoutSeconds: 60 });
  const yes = { answers: [{ id: "q1", selected: ["Yes"] }] };
  for (const args of [
    { questions: [{ id: "q1", question: "Ship it?", options: [{ label: "Yes" }, { label: "No" }] }] },
    '{"questions":[{"id":"q1","question":"Ship it?","options":["Yes","No"]}]}',
    { questions: '[{"question":"Ship it?","options":"[\\"Yes\\",\\"No\\"]","multiSelect":true}]' },
    { questions: [{ question: "Ship it?", options: ["Yes"], multiple: false }], timeout: 5 },
  ]) {
    assert.deepEqual(JSON.parse(await tool.execute(args)), yes, JSON.stringify(args));
  }
  const two = JSON.parse(await tool.execute({ questions: ["Which?", { id: "q1", question: "And?" }] }));
  assert.deepEqual(two.answers.map((a: { id: string }) => a.id), ["q1_", "q1"]);
});

test("what a model can correct is an error text, the rest is thrown", async (t) => {
  const { node, agent } = await asking(t);
  const tools = [askUserQuestionTool(agent), collectRepliesTool(agent)];
  for (const [args, words] of [
    ["{", /not JSON/],
    [{}, /questions/],
    [{ questions: [] }, /EMPTY_QUESTIONS/],
    [{ questions: [{ id: 1, question: "?" }] }, /questions\[0\]\.id/],
    [{ questions: [{ id: "a", question: "?" }, { id: "a", question: "!" }] }, /"a"/],
    [{ questions: [{ id: "a", question: "?" }], timeout: 0 }, /BAD_TIMEOUT/],
    [null, /INVALID_ARGS/],
  ] as const) {
    const result = await runTool(tools, "ask_user_question", args);
    assert.equal(result.isError, true, JSON.stringify(args));
    assert.match(result.text, /^Error: /);
    assert.match(result.text, words);
  }
  assert.deepEqual(await runTool(tools, "other", {}), { text: "Error: there is no tool other", isError: true });

  const lost = askUserQuestionTool(await node.client({ unreachableMs: 0 }).attach("demo", "agent"));
  await node.kill();
  await assert.rejects(runTool([lost], "ask_user_question", { questions: [shipIt] }), { code: "UNAVAILABLE" });
});

test("each agent SDK gets the tool in its own shape", async (t) => {
  const { agent } = await asking(t);
  const ask = askUserQuestionTool(agent);
  const { name, description, parameters } = ask;
  assert.deepEqual(openAIChatTool(ask), { type: "function", function: { name, description, parameters } });
  assert.deepEqual(openAIResponsesTool(ask), { type: "function", name, description, parameters, strict: false });
  assert.deepEqual(anthropicTool(ask), { name, description, input_schema: parameters });

  const vercel = vercelTool(ask, (schema) => ({ jsonSchema: schema }));
  assert.deepEqual(vercel.inputSchema, { jsonSchema: parameters });
  const text = await vercel.execute({ questions: [shipIt] }, { toolCallId: "call_1", abortSignal: new AbortController().signal });
  assert.deepEqual(JSON.parse(text), { answers: [{ id: "ship", selected: ["Yes"] }] });
});

test("an aborted tool call ends as pending, and its answer is collected by the tool", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const stop = new AbortController();
  const watch = parley.watch({ session: "demo" });
  const executing = vercelTool(askUserQuestionTool(agent), (s) => s).execute({ questions: [shipIt] }, { abortSignal: stop.signal });
  const aborted = assert.rejects(executing, { name: "AbortError" });
  let callId = "";
  for await (const { question } of watch) {
    if (question?.state === "open") stop.abort();
    if (question?.state === "continued") callId = question.callId;
    if (callId) break;
  }
  await aborted;
  await parley.submit({ session: "demo", callId, answers: [{ id: "ship", selected: ["No"] }] });

  const tools = [collectRepliesTool(agent)];
  const first = JSON.parse((await runTool(tools, "collect_replies", {})).text);
  assert.equal(first.replies.length, 1);
  assert.deepEqual(first.replies[0].answers, [{ id: "ship", selected: ["No"] }]);
  assert.equal(first.replies[0].callId, callId);
  const again = JSON.parse((await runTool(tools, "collect_replies", "{}")).text);
  assert.equal(again.replies[0].reply_id, first.replies[0].reply_id);
  assert.match(again.replies[0].note, /do not act again/);
  const last = JSON.parse((await runTool(tools, "collect_replies", { after: again.token })).text);
  assert.deepEqual(last, { replies: [], message: "Nothing waits." });
});
