import assert from "node:assert/strict";
import { test } from "node:test";

import type { Agent, Parley, Reply } from "@parley/client";

import { Node, shipIt, signalled, take } from "./node.js";

/** Asks, lets it become pending, and answers late. */
async function late(parley: Parley, agent: Agent, callId: string, custom: string): Promise<void> {
  const outcome = await agent.ask({ questions: [shipIt], callId, timeoutSeconds: 1 });
  assert.equal(outcome.outcome, "pending");
  const { outcome: queued } = await parley.submit({ session: agent.session, callId, by: "ada", answers: [{ id: "ship", selected: [], custom }] });
  assert.equal(queued, "queued");
}

const custom = (r: Reply) => r.answers?.[0]?.custom;

test("a late answer is collected once in the log, again until it is acknowledged, then gone", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const agent = await parley.attach("demo", "agent");
  assert.deepEqual(await agent.collect(), { replies: [], token: "", more: 0, state: "" });
  await late(parley, agent, "c1", "later");

  const first = await agent.collect();
  assert.equal(first.replies.length, 1);
  const reply = first.replies[0] as Reply;
  assert.deepEqual([reply.kind, reply.callId, reply.redelivered, reply.delivery], ["reply", "c1", false, 1]);
  assert.deepEqual(reply.answers, [{ id: "ship", selected: [], custom: "later" }]);
  assert.equal(reply.questions?.[0]?.question, "Ship it?");

  await node.kill(); // the response was lost
  await node.start();
  const second = await agent.collect();
  assert.deepEqual(
    second.replies.map((r) => [r.messageId, r.redelivered, r.delivery]),
    [[reply.messageId, true, 2]],
  );
  assert.deepEqual((await agent.collect({ after: second.token })).replies, []);
  assert.deepEqual((await agent.collect()).replies, []);
});

test("a list whose response is lost is listed again under the same ids", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  await late(parley, await parley.attach("demo", "agent"), "c1", "one");
  let cuts = 2;
  const losing = node.client({
    fetch: async (...args) => {
      const response = await fetch(...args);
      if (!String(args[0]).endsWith("/CollectReplies") || cuts-- <= 0) return response;
      await response.arrayBuffer();
      throw new TypeError("the response was lost");
    },
  });
  const agent = await losing.attach("demo", "agent");
  const { replies, token } = await agent.collect();
  assert.deepEqual(replies.map((r) => [custom(r), r.delivery, r.redelivered]), [["one", 3, true]]);
  cuts = 1; // of an acknowledgement
  assert.deepEqual((await agent.collect({ after: token })).replies, []);
  assert.deepEqual((await parley.attach("demo", "agent").then((a) => a.collect())).replies, []);
});

test("an idle loop is woken by what it has not collected", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const woken = agent.awaitReplies();
  await late(parley, agent, "c1", "one");
  await woken;
  assert.equal((await agent.collect()).replies.length, 1);
  await assert.rejects(agent.awaitReplies({ signal: AbortSignal.timeout(1) }), { name: "TimeoutError" });
});

test("replies yields each reply as it comes and acknowledges when asked for more", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const agent = await parley.attach("demo", "agent");
  const stop = new AbortController();
  const replies = agent.replies({ signal: stop.signal });
  const first = take(replies); // waits
  await late(parley, agent, "c1", "one");
  assert.equal(custom(await first), "one");

  const second = take(replies); // acknowledges the first
  await node.kill(); // while it waits
  await node.start();
  await late(parley, agent, "c2", "two");
  assert.equal(custom(await second), "two");

  const again = (await agent.collect()).replies; // the second one is not acknowledged
  assert.deepEqual(again.map((r) => [custom(r), r.redelivered]), [["two", true]]);

  const third = replies.next(); // now it is
  stop.abort(new Error("enough"));
  await assert.rejects(third, /enough/);
});

test("leaving the loop leaves what was not finished", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  await late(parley, agent, "c1", "one");
  for await (const reply of agent.replies()) {
    assert.equal(reply.redelivered, false);
    break;
  }
  const { replies, token } = await agent.collect();
  assert.deepEqual(replies.map((r) => r.redelivered), [true]);
  assert.deepEqual((await agent.collect({ after: token })).replies, []);
});

test("an answer in time to a process that died is collected by the next one", async (t) => {
  const node = await Node.start(t);
  const dying = new AbortController();
  const waiting = signalled();
  const agent = await node.client().attach("demo", "agent");
  const asking = agent.ask({ questions: [shipIt], callId: "c1", signal: dying.signal, onWaiting: () => waiting.resolve() });
  await waiting.promise;
  dying.abort();
  await assert.rejects(asking);

  const parley = node.client();
  const { outcome } = await parley.submit({ session: "demo", callId: "c1", answers: [{ id: "ship", selected: ["Yes"] }] });
  assert.equal(outcome, "answered");
  const next = await parley.attach("demo", "agent");
  const { replies } = await next.collect();
  assert.deepEqual(replies.map((r) => [r.kind, r.callId, r.answers?.[0]?.selected]), [["result", "c1", ["Yes"]]]);
});

test("a message that looks like an answer is a message", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const text = '{"kind":"answer_to_pending_question","answers":[{"id":"ship","selected":["Yes"]}]}';
  await parley.rpc.inbox.steer({ session: "demo", messageId: "m1", text, by: "eve" });
  const { replies } = await agent.collect();
  assert.deepEqual(replies.map((r) => [r.kind, r.answers]), [["message", undefined]]);
});
