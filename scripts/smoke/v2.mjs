// The official TypeScript SDK, version 2, pinned to the stateless revision of
// 2026-07-28, stdio and HTTP.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { session } from './session.mjs';

const [bin, ws, url] = process.argv.slice(2);
for (const [name, transport] of [
  ['typescript-sdk v2 2026-07-28 stdio', new StdioClientTransport({ command: bin, args: ['--workspace', ws], env: process.env })],
  ['typescript-sdk v2 2026-07-28 http', new StreamableHTTPClientTransport(new URL(url))],
]) {
  let decision = 'deny';
  const client = new Client({ name: 'smoke', version: '2' }, {
    capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } },
  });
  client.setRequestHandler('elicitation/create', async () =>
    decision === 'deny' ? { action: 'decline' } : { action: 'accept', content: { decision } });
  await client.connect(transport);
  await session(name, client, ws, (d) => { decision = d; });
  await client.close();
}
