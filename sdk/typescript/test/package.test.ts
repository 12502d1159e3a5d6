import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Node } from "./node.js";

const top = fileURLToPath(new URL("..", import.meta.url));
const npm = process.platform === "win32" ? "npm.cmd" : "npm";

test("what is packed is what should ship, its types work under nodenext and bundler, and the pages' loops run", async (t) => {
  const packed = execFileSync(npm, ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: top, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const files = (JSON.parse(packed) as [{ files: { path: string }[] }])[0].files.map((f) => f.path);
  const odd = files.filter((f) => !/^(package\.json|README\.md|LICENSE|dist\/(gen\/)?[a-z_]+(\.d\.ts|\.js))$/.test(f));
  assert.deepEqual(odd, [], "these should not ship");
  for (const f of ["README.md", "LICENSE", "dist/index.js", "dist/index.d.ts", "dist/protocol.js", "dist/gen/service_pb.d.ts"]) {
    assert.ok(files.includes(f), `${f} is not packed`);
  }

  const consumer = mkdtempSync(join(tmpdir(), "parley-consumer-"));
  t.after(() => rmSync(consumer, { recursive: true, force: true }));
  cpSync(join(top, "test", "consumer"), consumer, { recursive: true });
  for (const f of files) {
    const to = join(consumer, "node_modules", "@parley", "client", f);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(top, f), to);
  }
  // The examples of the pages, as somebody would paste them.
  const node = await Node.start(t);
  const loops: string[] = [];
  for (const page of ["README.md", "../../docs/agents/typescript.md"]) {
    const blocks = [...readFileSync(join(top, page), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map((m) => m[1] ?? "");
    assert.ok(blocks.length > 0, page);
    blocks.forEach((block, i) => {
      const name = `${basename(page, ".md").toLowerCase()}-${i}`;
      if (block.includes("awaitReplies")) loops.push(name);
      writeFileSync(join(consumer, `${name}.ts`), block.replaceAll("http://127.0.0.1:7410", node.url).replace('"ts-demo"', `"${name}"`));
    });
  }
  for (const scope of ["@bufbuild", "@connectrpc"]) symlinkSync(join(top, "node_modules", scope), join(consumer, "node_modules", scope), "junction");
  for (const resolution of ["bundler", "nodenext"]) {
    const tsc = spawnSync(process.execPath, [join(top, "node_modules", "typescript", "bin", "tsc"), "-p", `tsconfig.${resolution}.json`], { cwd: consumer, encoding: "utf8" });
    assert.equal(tsc.stdout, "", resolution);
    assert.equal(tsc.status, 0, resolution);
  }

  assert.equal(loops.length, 2);
  const parley = node.client();
  for (const loop of loops) {
    const running = spawn(process.execPath, [join(consumer, "out", `${loop}.js`)], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [running.stdout, running.stderr]) stream.on("data", (text) => (said += text));
    const gone = once(running, "exit");
    for await (const { question } of parley.watch({ session: loop })) {
      if (question?.state !== "continued") continue;
      await parley.submit({ session: loop, callId: question.callId, answers: [{ id: "ship", selected: [], custom: `late for ${loop}` }] });
      break;
    }
    await gone;
    assert.match(said, new RegExp(`"custom":"late for ${loop}"`));
    assert.match(said, /Error: done/);
  }
});

test("nothing of the package is of Node alone, and the lock names no registry", () => {
  const lock = JSON.parse(readFileSync(join(top, "package-lock.json"), "utf8")) as { packages: Record<string, { resolved?: string }> };
  assert.deepEqual(Object.entries(lock.packages).filter(([, p]) => p.resolved !== undefined), []);
  for (const name of ["agent", "claim", "connection", "errors", "parley", "tools", "types", "watch"]) {
    const text = readFileSync(join(top, "dist", `${name}.js`), "utf8");
    assert.doesNotMatch(text, /from "node:|require\(|\bprocess\.|\bBuffer\b/, name);
  }
});
