import assert from "node:assert/strict";
import { test } from "node:test";

import { Parley, ParleyError, skipped, type Waiting } from "@parley/client";

import { Node, shipIt, signalled } from "./node.js";

test("an answer in time is the outcome (Q-031), and is acknowledged", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const agent = await parley.attach("demo", "agent");
  const waiting = signalled<Waiting>();
  const asking = agent.ask({ questions: [shipIt], timeoutSeconds: 60, onWaiting: waiting.resolve });
  const { callId, remainingMs } = await waiting.promise;
  assert.ok(remainingMs !== undefined && remainingMs > 0 && remainingMs <= 60_000, `remaining ${remainingMs}`);

  const submitted = await parley.submit({ session: "demo", callId, by: "ada", answers: [{ id: "ship", selected: ["Yes"], custom: "but gently" }] });
  assert.equal(submitted.outcome, "answered");

  const outcome = await asking;
  assert.equal(outcome.outcome, "answered");
  assert.ok(outcome.outcome === "answered");
  assert.deepEqual(outcome.answers, [{ id: "ship", selected: ["Yes"], custom: "but gently" }]);
  assert.deepEqual(JSON.parse(outcome.toolResult), { answers: outcome.answers });
  assert.deepEqual((await agent.collect()).replies, [], "what was acknowledged is not listed");
});

test("a skip is an answer that decides nothing", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const outcome = await agent.ask({
    questions: [shipIt],
    onWaiting: ({ callId }) => void parley.submit({ session: "demo", callId, answers: [{ id: "ship", selected: [] }] }),
  });
  assert.ok(outcome.outcome === "answered");
  assert.deepEqual(outcome.answers.map(skipped), [true]);
});

test("nobody in time is pending, which holds no answers (promise 3)", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const outcome = await agent.ask({ questions: [shipIt], timeoutSeconds: 1, callId: "c1" });
  assert.equal(outcome.outcome, "pending");
  assert.equal(outcome.callId, "c1");
  assert.ok(!("answers" in outcome));
  // @ts-expect-error a pending outcome has no answers
  if (outcome.outcome === "pending") assert.equal(outcome.answers, undefined);
  assert.equal(JSON.parse(outcome.toolResult).pending, true);
});

test("an ask goes on over a killed node, with its deadline (promise 7)", async (t) => {
  const node = await Node.start(t, { flags: ["--default-timeout", "never"] });
  const retried = signalled<ParleyError>();
  const parley = node.client({ onRetry: (error) => retried.resolve(error) });
  const agent = await parley.attach("demo", "agent");
  const before = signalled<Waiting>();
  const after = signalled<Waiting>();
  let told = 0;
  const asking = agent.ask({ questions: [shipIt], onWaiting: (w) => (told++ === 0 ? before : after).resolve(w) });
  const first = await before.promise;
  assert.equal(first.remainingMs, undefined);

  await node.kill();
  assert.equal((await retried.promise).code, "UNAVAILABLE");
  await node.start();

  assert.deepEqual(await after.promise, first, "it listens to the same call");
  await parley.submit({ session: "demo", callId: first.callId, answers: [{ id: "ship", selected: ["No"] }] });
  const outcome = await asking;
  assert.ok(outcome.outcome === "answered");
  assert.deepEqual(outcome.answers[0]?.selected, ["No"]);
});

test("another process listens to the same call by its attempt", async (t) => {
  const node = await Node.start(t);
  const agent = await node.client().attach("demo", "agent");
  const stop = new AbortController();
  const waiting = signalled<Waiting>();
  const asking = agent.ask({ questions: [shipIt], attempt: "a1", signal: stop.signal, onWaiting: waiting.resolve });
  const { callId } = await waiting.promise;
  stop.abort(new Error("the process ended"));
  await assert.rejects(asking, /the process ended/);

  const later = node.client();
  const again = (await later.attach("demo", "agent")).ask({ attempt: "a1" });
  await later.submit({ session: "demo", callId, answers: [{ id: "ship", selected: ["Yes"] }] });
  const outcome = await again;
  assert.ok(outcome.outcome === "answered");
  assert.equal(outcome.callId, callId);
});

test("abort stops listening and settles nothing", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const stop = new AbortController();
  const asking = agent.ask({ questions: [shipIt], callId: "c1", signal: stop.signal, onWaiting: () => stop.abort() });
  await assert.rejects(asking, { name: "AbortError" });
  assert.equal((await parley.question("demo", "c1")).state, "open");
  await assert.rejects(agent.ask({ questions: [shipIt], callId: "c2", signal: AbortSignal.abort() }), { name: "AbortError" });
  await assert.rejects(parley.question("demo", "c2"), { code: "NOT_FOUND" }, "an aborted ask asks nothing");
});

test("abort with endOnAbort ends the call as pending, and the answer is a reply", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const stop = new AbortController();
  const asking = agent.ask({ questions: [shipIt], callId: "c1", signal: stop.signal, endOnAbort: true, onWaiting: () => stop.abort() });
  await assert.rejects(asking, { name: "AbortError" });
  assert.equal((await parley.question("demo", "c1")).state, "continued");
  const submitted = await parley.submit({ session: "demo", callId: "c1", answers: [{ id: "ship", selected: ["Yes"] }] });
  assert.equal(submitted.outcome, "queued");
});

test("eight questions at once are answered in any order (fault W1)", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const calls = Array.from({ length: 8 }, (_, i) => `c${i}`);
  const all = calls.map(() => signalled());
  const asked = calls.map((callId, i) => agent.ask({ questions: [{ id: "q", question: `Number ${i}?` }], callId, onWaiting: () => all[i]?.resolve() }));
  await Promise.all(all.map((a) => a.promise));
  const order = [5, 2, 7, 0, 6, 1, 4, 3];
  await Promise.all(order.map((i) => parley.submit({ session: "demo", callId: `c${i}`, answers: [{ id: "q", selected: [], custom: `${i}` }] })));
  const outcomes = await Promise.all(asked);
  assert.deepEqual(
    outcomes.map((o) => (o.outcome === "answered" ? o.answers[0]?.custom : o.outcome)),
    calls.map((_, i) => `${i}`),
  );
});

test("withdrawing ends the call, and tells how (ASK_ABORTED)", async (t) => {
  const parley = (await Node.start(t)).client();
  const agent = await parley.attach("demo", "agent");
  const waiting = signalled<Waiting>();
  const asking = agent.ask({ questions: [shipIt], onWaiting: waiting.resolve });
  const { callId } = await waiting.promise;
  const [refused, settled] = await Promise.all([asking.catch((e: unknown) => e), agent.withdraw(callId, "no longer needed")]);
  assert.ok(refused instanceof ParleyError);
  assert.equal(refused.code, "ASK_ABORTED");
  assert.equal(settled.by, "agent");
});

test("errors name what is wrong and what to do", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const agent = await parley.attach("demo", "agent");
  await assert.rejects(agent.ask({ questions: [shipIt], timeoutSeconds: 1.5 }), { code: "BAD_TIMEOUT", text: /1\.5/ });
  await assert.rejects(agent.ask({ questions: [shipIt], timeoutSeconds: 0 }), { code: "BAD_TIMEOUT" });
  await assert.rejects(agent.ask({ questions: [] }), { code: "EMPTY_QUESTIONS" });
  await assert.rejects(agent.ask({ questions: [shipIt, shipIt] }), { code: "INVALID_ARGS", text: /"ship"/ });
  await assert.rejects(agent.ask({ questions: [{ id: "q", question: 5 as unknown as string }] }), { code: "BAD_REQUEST" });
  await assert.rejects(agent.ask({ arguments: '{"questions":[{"id":1}]}' }), { code: "INVALID_ARGS", text: /questions\[0\]\.id/ });
  await assert.rejects(agent.ask({ questions: [{ id: "q", question: "half \ud800 a pair" }], timeoutSeconds: 1 }), { code: "BAD_REQUEST" });
  await assert.rejects(agent.ask({ attempt: "never-asked" }), (e) => e instanceof ParleyError && !e.temporary && e.remedy !== "");
  await assert.rejects(parley.attach("", "agent"), { code: "BAD_REQUEST" });

  const child = await parley.attach("child", "helper", { owner: "demo" });
  await assert.rejects(child.ask({ questions: [shipIt] }), { code: "DELEGATED_CALLER" }, "Q-044");

  await parley.attach("demo", "another");
  await assert.rejects(agent.ask({ questions: [shipIt] }), { code: "CALLER_NOT_LIVE" });
});

test("what is no node's address is said at once, and no node within bounds", async () => {
  for (const url of ["", "127.0.0.1:7410", "ftp://host"]) assert.throws(() => new Parley({ url }), { code: "BAD_REQUEST" }, url);
  assert.throws(() => new Parley({ url: "http://127.0.0.1:1", token: "secret\n" }), { code: "BAD_REQUEST", message: /newline/ });
});

test("a lost ask says under which key it goes on", async (t) => {
  const node = await Node.start(t);
  const agent = await node.client({ unreachableMs: 0 }).attach("demo", "agent");
  const stopped = signalled();
  const asking = agent.ask({ questions: [shipIt], attempt: "a1", onWaiting: () => void node.kill().then(stopped.resolve) });
  await assert.rejects(asking, { code: "UNAVAILABLE", retryKey: "a1", temporary: true });
  await stopped.promise;
});

test("a node with a token refuses who has none, or another", async (t) => {
  const token = "a-long-enough-token-of-a-test";
  const node = await Node.start(t, { env: { PARLEY_TOKEN: token } });
  await assert.rejects(node.client().attach("demo", "agent"), { code: "UNAUTHENTICATED" });
  await assert.rejects(node.client({ token: `${token}x` }).attach("demo", "agent"), { code: "UNAUTHENTICATED" });
  await assert.rejects(node.client().watch().next(), { code: "UNAUTHENTICATED" }, "a watch does not try again");
  assert.equal((await node.client({ token }).attach("demo", "agent")).session, "demo");
});

test("each side needs the token of its role", async (t) => {
  const [agentToken, answererToken, viewerToken] = ["a-long-token-of-the-agent", "a-long-token-of-a-person", "a-long-token-of-a-viewer"];
  const node = await Node.start(t, { env: { PARLEY_AGENT_TOKEN: agentToken, PARLEY_ANSWERER_TOKEN: answererToken, PARLEY_VIEWER_TOKEN: viewerToken } });
  const [asker, person, viewer] = [agentToken, answererToken, viewerToken].map((token) => node.client({ token })) as [Parley, Parley, Parley];
  await assert.rejects(node.client().attach("demo", "agent"), { code: "UNAUTHENTICATED" });
  await assert.rejects(person.attach("demo", "agent"), (e) => {
    assert.ok(e instanceof ParleyError);
    assert.equal(e.code, "FORBIDDEN_ROLE");
    assert.match(e.text, /agent/, "it names who may");
    return !e.temporary && e.remedy !== "";
  });
  const agent = await asker.attach("demo", "agent");
  const answer = { session: "demo", callId: "c1", answers: [{ id: "ship", selected: ["Yes"] }] };
  const outcome = await agent.ask({
    questions: [shipIt],
    callId: "c1",
    onWaiting: async () => {
      await assert.rejects(asker.submit(answer), { code: "FORBIDDEN_ROLE" }, "only a person's act makes an answer (promise 3)");
      await assert.rejects(viewer.submit(answer), { code: "FORBIDDEN_ROLE" });
      await assert.rejects(viewer.claim("demo", "c1"), { code: "FORBIDDEN_ROLE" });
      assert.equal((await viewer.question("demo", "c1")).state, "open");
      await person.submit(answer);
    },
  });
  assert.equal(outcome.outcome, "answered");
});
