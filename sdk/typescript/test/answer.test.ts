import assert from "node:assert/strict";
import { test } from "node:test";

import { createRouterTransport } from "@connectrpc/connect";
import { Parley, ParleyError, type QuestionCall, type Waiting } from "@parley/client";
import { QuestionService } from "@parley/client/protocol";

import { Node, shipIt, signalled, take } from "./node.js";

const yes = [{ id: "ship", selected: ["Yes"] }];

/** Asks, and returns once the question is durable. */
async function asked(node: Node, callId: string, timeoutSeconds?: number) {
  const agent = await node.client().attach("demo", "agent");
  const waiting = signalled<Waiting>();
  const outcome = agent.ask({ questions: [shipIt], callId, timeoutSeconds, signal: node.over, onWaiting: waiting.resolve });
  outcome.catch(() => undefined); // the test may end before it
  await Promise.race([waiting.promise, outcome]);
  return { agent, outcome };
}

test("the loser of a race is told who won (promise 2)", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const { outcome } = await asked(node, "c1");
  const won = await parley.submit({ session: "demo", callId: "c1", by: "ada", submissionId: "s1", answers: yes });
  assert.equal(won.repeated, false);
  await assert.rejects(parley.submit({ session: "demo", callId: "c1", by: "bob", answers: [{ id: "ship", selected: ["No"] }] }), (e) => {
    assert.ok(e instanceof ParleyError);
    assert.equal(e.code, "SETTLED");
    assert.equal(e.winner?.by, "ada");
    assert.equal(e.winner?.submissionId, "s1");
    assert.equal(e.temporary, false);
    return true;
  });
  assert.equal((await parley.submit({ session: "demo", callId: "c1", by: "ada", submissionId: "s1", answers: yes })).repeated, true);
  assert.equal((await outcome).outcome, "answered");
  await assert.rejects(parley.submit({ session: "demo", callId: "no", answers: yes }), { code: "NOT_ANSWERABLE" });
});

test("a submission is sent again under its id until a node is there", async (t) => {
  const node = await Node.start(t);
  const retried = signalled();
  const parley = node.client({ onRetry: () => retried.resolve() });
  const { outcome } = await asked(node, "c1");
  await node.kill();
  const submitting = parley.submit({ session: "demo", callId: "c1", answers: yes });
  await retried.promise;
  await node.start();
  assert.equal((await submitting).outcome, "answered");
  assert.equal((await outcome).outcome, "answered");
});

test("a submission whose response is lost is accepted once", async (t) => {
  const node = await Node.start(t);
  const { outcome } = await asked(node, "c1");
  let lost = 0;
  const parley = node.client({
    fetch: async (...args) => {
      const response = await fetch(...args);
      if (lost++ > 0) return response;
      await response.arrayBuffer();
      throw new TypeError("the response was lost");
    },
  });
  const submitted = await parley.submit({ session: "demo", callId: "c1", answers: yes });
  assert.deepEqual([submitted.outcome, submitted.repeated, lost], ["answered", true, 2]);
  assert.equal((await outcome).outcome, "answered");
});

test("a watch shows the start, then every change, and goes on over a killed node without gap or repeat", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const one = await asked(node, "c1", -1);
  const watch = parley.watch({ session: "demo" });
  const seen: [string, string][] = [];
  const next = async () => {
    const change = await take(watch);
    if (change.question) seen.push([change.question.callId, change.question.state]);
    return change;
  };
  assert.equal((await next()).cursor, 0);
  const live = await next();
  assert.deepEqual([live.question, live.live], [undefined, true]);

  const two = await asked(node, "c2", -1);
  const { cursor } = await next();
  assert.ok(cursor > live.cursor);

  const cut = next(); // under way when the node dies
  await node.kill();
  await node.start();
  await parley.submit({ session: "demo", callId: "c1", answers: yes });
  await parley.submit({ session: "demo", callId: "c2", answers: yes });
  await cut;
  await next();
  await Promise.all([one.outcome, two.outcome]);
  await asked(node, "c3", -1);
  await next();
  const expected: [string, string][] = [["c1", "open"], ["c2", "open"], ["c1", "settled"], ["c2", "settled"], ["c3", "open"]];
  assert.deepEqual(seen, expected);
  await watch.return(undefined as never);

  const resumed = parley.watch({ session: "demo", cursor });
  const rest: [string, string][] = [];
  let lives = 0;
  while (rest.length < 3 || lives === 0) {
    const { question, live } = await take(resumed);
    if (question) rest.push([question.callId, question.state]);
    if (live) lives++;
  }
  assert.deepEqual(rest, expected.slice(2));
  await resumed.return(undefined as never);
});

/** The first whole frame of a stream (flags, four bytes of length, message), and then a cut. */
async function firstFrame(from: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>> {
  let bytes = Buffer.alloc(0);
  const reader = from.getReader();
  while (bytes.length < 5 || bytes.length < 5 + bytes.readUInt32BE(1)) {
    const { value, done } = await reader.read();
    assert.ok(!done, "the stream has no frame");
    bytes = Buffer.concat([bytes, value]);
  }
  await reader.cancel();
  let sent = false;
  return new ReadableStream({
    pull(out) {
      if (sent) return out.error(new TypeError("cut"));
      sent = true;
      out.enqueue(bytes.subarray(0, 5 + bytes.readUInt32BE(1)));
    },
  });
}

test("a starting list that is cut off in the middle is shown whole and once", async (t) => {
  const node = await Node.start(t);
  for (const call of ["c1", "c2", "c3"]) await asked(node, call, -1);
  let streams = 0;
  const cutting = node.client({
    fetch: async (...args) => {
      const response = await fetch(...args);
      if (streams++ > 0) return response;
      const body = await firstFrame(response.body as ReadableStream<Uint8Array>);
      return new Response(body, { status: response.status, headers: response.headers });
    },
  });
  const calls: string[] = [];
  for await (const { question, live } of cutting.watch({ session: "demo" })) {
    if (question) calls.push(question.callId);
    if (live) break;
  }
  assert.deepEqual(calls, ["c1", "c2", "c3"]);
  assert.equal(streams, 2);
});

test("a watch that stays silent for twice its heartbeat is opened again where it was", async () => {
  const cursors: bigint[] = [];
  const silent = createRouterTransport(({ service }) =>
    service(QuestionService, {
      async *watchQuestions({ cursor }, { signal }) {
        cursors.push(cursor);
        yield { cursor: 7n, live: true, heartbeatMs: 20n };
        if (cursors.length === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
        yield { cursor: 8n, question: { session: "demo", callId: "c1" } };
      },
    }),
  );
  const watch = new Parley({ url: "", transport: silent }).watch();
  assert.equal((await take(watch)).live, true);
  assert.equal((await take(watch)).question?.callId, "c1");
  assert.deepEqual(cursors, [0n, 7n]);
  await watch.return(undefined as never);
});

test("a watch ends when it is told to", async (t) => {
  const parley = (await Node.start(t)).client();
  const stop = new AbortController();
  const reason = new Error("enough");
  const watch = parley.watch({ signal: stop.signal });
  assert.equal((await take(watch)).live, true);
  const next = watch.next();
  stop.abort(reason);
  await assert.rejects(next, reason);
});

test("a claim holds the deadline until it is released", async (t) => {
  const node = await Node.start(t, { flags: ["--claim-grace", "0s"] });
  const parley = node.client();
  const { outcome } = await asked(node, "c1", 3);
  const claim = await parley.claim("demo", "c1", { client: "ui" });
  assert.ok(claim);
  assert.ok(claim.remainingMs !== undefined && claim.remainingMs <= 3000, `remaining ${claim.remainingMs}`);
  const other = await asked(node, "c2", 4); // asked later, and pending first
  assert.equal((await other.outcome).outcome, "pending");
  assert.equal((await parley.question("demo", "c1")).state, "open");
  await claim.release();
  assert.equal((await claim.ended).reason, "released");
  assert.equal((await outcome).outcome, "pending");
  await claim.release();
  assert.equal(await parley.claim("demo", "c1"), undefined, "no call waits any more");
});

test("a claim is held again over a killed node, and is over when the question is", async (t) => {
  const node = await Node.start(t);
  const held = [signalled(), signalled()];
  let streams = 0;
  const parley = node.client({
    fetch: async (...args) => {
      const response = await fetch(...args);
      if (String(args[0]).endsWith("/AttachWait")) held[streams++]?.resolve();
      return response;
    },
  });
  const { outcome } = await asked(node, "c1", -1);
  const claim = await parley.claim("demo", "c1");
  assert.ok(claim);
  await node.kill();
  await node.start();
  await held[1]?.promise;
  await parley.submit({ session: "demo", callId: "c1", answers: yes });
  assert.equal((await outcome).outcome, "answered");
  assert.equal((await claim.ended).reason, "over");
  assert.equal(streams, 2);
});

test("a client's countdown ends the wait (ASK_TIMED_OUT becomes pending), and its signal lets go", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const { outcome } = await asked(node, "c1", 60);
  const claim = await parley.claim("demo", "c1");
  assert.equal(await claim?.expire("ada"), true);
  assert.equal((await outcome).outcome, "pending");

  await asked(node, "c2", -1);
  const stop = new AbortController();
  const second = await parley.claim("demo", "c2", { signal: stop.signal });
  stop.abort();
  assert.equal((await second?.ended)?.reason, "released");
});

test("a claim that leaves its wait to others was released", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  const { outcome } = await asked(node, "c1", 60);
  const ada = await parley.claim("demo", "c1", { client: "ada" });
  const bob = await parley.claim("demo", "c1", { client: "bob" });
  const cyd = await parley.claim("demo", "c1", { client: "cyd" });
  assert.equal(await ada?.delegate("ada"), false, "two are left");
  assert.equal((await ada?.ended)?.reason, "released");
  assert.equal(await bob?.expire("bob"), false, "one is left");
  assert.equal((await bob?.ended)?.reason, "released");
  assert.equal(await cyd?.expire("cyd"), true, "nobody is left");
  assert.equal((await cyd?.ended)?.reason, "over");
  assert.equal((await outcome).outcome, "pending");
});

test("questions are listed by page, with what the question was", async (t) => {
  const node = await Node.start(t);
  const parley = node.client();
  await asked(node, "c1", -1);
  await asked(node, "c2", 60);
  const first = await parley.questions({ session: "demo", limit: 1 });
  assert.notEqual(first.next, "");
  const second = await parley.questions({ session: "demo", limit: 1, after: first.next });
  const [one, two] = [...first.questions, ...second.questions] as [QuestionCall, QuestionCall];
  assert.deepEqual([one.callId, two.callId], ["c1", "c2"]);
  assert.equal(one.deadlineMs, undefined);
  assert.ok((two.remainingMs ?? 0) > 0);
  assert.deepEqual(one.questions, [
    { id: "ship", question: "Ship it?", header: "", options: [{ label: "Yes", description: "" }, { label: "No", description: "" }], multiSelect: false },
  ]);
  JSON.stringify(one);
  await assert.rejects(parley.questions({ limit: 100_000 }), ParleyError);
});
