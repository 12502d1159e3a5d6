// Builds the parley command, unless PARLEY_BIN names one, and runs the tests against it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const top = fileURLToPath(new URL("../../..", import.meta.url));

function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = process.env): number {
  const { status, error } = spawnSync(command, args, { cwd, env, stdio: "inherit" });
  if (error) console.error(`${command}: ${error.message}`);
  return status ?? 1;
}

const folder = mkdtempSync(join(tmpdir(), "parley-"));
try {
  let binary = process.env["PARLEY_BIN"];
  if (binary === undefined) {
    binary = join(folder, process.platform === "win32" ? "parley.exe" : "parley");
    process.exitCode = run(process.env["GO"] ?? "go", ["build", "-o", binary, "./cmd/node"], top);
  }
  if (!process.exitCode) {
    const tests = readdirSync(here).filter((name) => name.endsWith(".test.js")).map((name) => join(here, name));
    // A test that waits for what never comes fails instead of hanging.
    process.exitCode = run(process.execPath, ["--test", "--test-timeout=120000", ...process.argv.slice(2), ...tests], here, { ...process.env, PARLEY_BIN: binary });
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
