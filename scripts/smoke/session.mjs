// One agent session through a client: list, run, read, a refusal, and a risky
// call answered yes and no. Throws on the first thing that is not as it must be.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export async function session(name, client, ws, answer) {
  const text = (r) => r.content.map((c) => c.text ?? '').join('\n');
  const call = (tool, args) => client.callTool({ name: tool, arguments: args });

  const { tools } = await client.listTools();
  const names = tools.map((t) => t.name);
  for (const want of ['bash', 'read', 'write', 'edit', 'grep', 'find_path', 'list_directory', 'fetch', 'web_scrape', 'status']) {
    assert(names.includes(want), `${name}: tools/list lacks ${want}`);
  }

  let r = await call('bash', { command: 'echo hi; exit 3' });
  assert(!r.isError && text(r).includes('hi'), `${name}: bash said ${text(r)}`);
  assert.equal(r.structuredContent.exit_code, 3, `${name}: exit code`);

  writeFileSync(join(ws, 'notes.txt'), 'first line\nsecond line\n');
  r = await call('read', { path: 'notes.txt' });
  assert(!r.isError && text(r).includes('second line'), `${name}: read said ${text(r)}`);

  r = await call('bash', { command: '(sudo id)' });
  assert(r.isError && text(r).includes('blocked_command'), `${name}: sudo was not refused: ${text(r)}`);
  assert.equal(r.structuredContent.category, 'policy_blocked');

  r = await call('read', {});
  assert(r.isError && text(r).includes('path'), `${name}: bad arguments: ${text(r)}`);

  const victim = join(ws, 'victim.txt');
  writeFileSync(victim, 'x');
  answer('deny');
  r = await call('bash', { command: 'rm victim.txt' });
  assert(r.isError && existsSync(victim), `${name}: a declined rm ran: ${text(r)}`);
  answer('allow_once');
  r = await call('bash', { command: 'rm victim.txt' });
  assert(!r.isError && !existsSync(victim), `${name}: an approved rm did not run: ${text(r)}`);
  console.log(`ok ${name}`);
}
