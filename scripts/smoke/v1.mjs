// The official TypeScript SDK, version 1 (initialize handshake), stdio and HTTP.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { session } from './session.mjs';

const [bin, ws, url] = process.argv.slice(2);
for (const [name, transport] of [
  ['typescript-sdk v1 stdio', new StdioClientTransport({ command: bin, args: ['--workspace', ws], env: process.env })],
  ['typescript-sdk v1 http', new StreamableHTTPClientTransport(new URL(url))],
]) {
  let decision = 'deny';
  const client = new Client({ name: 'smoke', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () =>
    decision === 'deny' ? { action: 'decline' } : { action: 'accept', content: { decision } });
  await client.connect(transport);
  await session(name, client, ws, (d) => { decision = d; });
  await client.close();
}
