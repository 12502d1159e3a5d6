// A real node, as a process that a test can kill and start again.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";

import { Parley, type ParleyOptions, type Question } from "@parley/client";

export const shipIt: Question = { id: "ship", question: "Ship it?", options: ["Yes", "No"] };

export class Node {
  url = "";
  /** Aborts when the test ends, so that nothing that it left open goes on. */
  readonly over: AbortSignal;
  readonly #folder = mkdtempSync(join(tmpdir(), "parley-node-"));
  #listen = "127.0.0.1:0";
  #process: ChildProcess | undefined;

  private constructor(
    readonly env: NodeJS.ProcessEnv,
    readonly flags: readonly string[],
    over: AbortSignal,
  ) {
    this.over = over;
  }

  /** Starts a node with a journal of its own, which ends with the test. */
  static async start(t: TestContext, { env = {}, flags = [] }: { env?: NodeJS.ProcessEnv; flags?: string[] } = {}): Promise<Node> {
    const over = new AbortController();
    const node = new Node(env, flags, over.signal);
    t.after(async () => {
      over.abort();
      await node.kill();
      rmSync(node.#folder, { recursive: true, force: true });
    });
    await node.start();
    return node;
  }

  /** Starts it, again at the address that it had. */
  async start(): Promise<void> {
    const binary = process.env["PARLEY_BIN"];
    if (binary === undefined) throw new Error("PARLEY_BIN names no parley command; use npm test");
    const journal = join(this.#folder, "journal.db");
    const child = spawn(binary, ["serve", "--listen", this.#listen, "--journal", journal, ...this.flags], {
      env: { PATH: process.env["PATH"], HOME: this.#folder, ...this.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    const lines = createInterface(child.stdout);
    for await (const line of lines) {
      const address = /^\s*address\s+(http:\S+)/.exec(line)?.[1];
      if (address === undefined) continue;
      this.url = address;
      this.#listen = new URL(address).host;
      child.stdout.resume();
      return;
    }
    throw new Error(`the node did not start: ${said}`);
  }

  /** SIGKILL: nothing is said, nothing is written any more. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  client(options: Partial<ParleyOptions> = {}): Parley {
    return new Parley({ url: this.url, ...options });
  }
}

/** A promise and what settles it. */
export function signalled<T = void>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((r) => (resolve = r));
  return { promise, resolve };
}

/** The next value of an iterator that never ends. */
export async function take<T>(from: AsyncGenerator<T, never, undefined>): Promise<T> {
  return (await from.next()).value;
}
