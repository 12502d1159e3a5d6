// Drives the two MCP clients of npm for the end-to-end tests: one command as
// JSON on each line of stdin, one answer with the same id on a line of stdout.
// It decides nothing: time limits and retries are the clients' own, unless a
// command names others.
import { createInterface } from 'node:readline';
import { Client as ClientOld } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HTTPOld } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioClientTransport as StdioOld } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as ClientNew, StreamableHTTPClientTransport as HTTPNew } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioNew } from '@modelcontextprotocol/client/stdio';

// By kind: how a client is made, its transports, and how it calls a tool.
const kinds = {
  ts1: { client: (info) => new ClientOld(info), http: HTTPOld, stdio: StdioOld, call: (c, p, o) => c.callTool(p, undefined, o) },
  ts2: { client: (info) => new ClientNew(info), http: HTTPNew, stdio: StdioNew, call: (c, p, o) => c.callTool(p, o) },
  'ts2-auto': {
    client: (info) => new ClientNew(info, { versionNegotiation: { mode: 'auto' } }),
    http: HTTPNew, stdio: StdioNew, call: (c, p, o) => c.callTool(p, o),
  },
};

const connections = new Map(); // by name: {kind, client}
const running = new Map(); // by the id of the command: its AbortController

// hasty retries for tests that spoil many connections.
const hasty = { initialReconnectionDelay: 20, maxReconnectionDelay: 100, reconnectionDelayGrowFactor: 1.5, maxRetries: 2 };

const commands = {
  async connect({ name, kind, url, command, args, env, timeout, hurry, client: clientName }) {
    const k = kinds[kind];
    const client = k.client({ name: clientName ?? 'parley-e2e', version: '1.0.0' });
    client.onerror = () => {}; // what matters comes back from the calls
    const transport = url
      ? new k.http(new URL(url), hurry ? { reconnectionOptions: hasty } : undefined)
      : new k.stdio({ command, args, env, stderr: 'ignore' });
    await client.connect(transport, timeout ? { timeout } : undefined);
    connections.set(name, { k, client });
    return { revision: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? '' };
  },

  async call({ id, name, tool, args, timeout, progress }) {
    const { k, client } = found(name);
    const stop = new AbortController();
    running.set(id, stop);
    const options = { signal: stop.signal };
    if (timeout) options.timeout = timeout;
    if (progress) {
      options.onprogress = (p) => say({ event: 'progress', id, progress: p });
      options.resetTimeoutOnProgress = true;
    }
    try {
      return await k.call(client, { name: tool, arguments: args }, options);
    } finally {
      running.delete(id);
    }
  },

  async list({ name }) {
    return await found(name).client.listTools();
  },

  async abort({ target }) {
    running.get(target)?.abort('the user changed their mind');
    return {};
  },

  async close({ name }) {
    const c = connections.get(name);
    connections.delete(name);
    await c?.client.close();
    return {};
  },
};

function found(name) {
  const c = connections.get(name);
  if (!c) throw new Error(`there is no connection ${name}`);
  return c;
}

function say(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

process.on('unhandledRejection', () => {}); // of a connection that was cut while nobody waited

createInterface({ input: process.stdin }).on('line', async (line) => {
  const command = JSON.parse(line);
  try {
    say({ id: command.id, result: await commands[command.op](command) });
  } catch (err) {
    say({ id: command.id, error: { code: String(err?.code ?? ''), message: String(err?.message ?? err) } });
  }
}).on('close', () => process.exit(0));
