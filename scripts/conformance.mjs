// Runs the conformance scenarios of each revision and judges them by what they
// can prove about a server without the suite's fixtures.
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [url, out] = process.argv.slice(2);

// Scenarios that need no fixture: every check counts.
const counted = {
  '2025-11-25': [
    'server-initialize', 'ping', 'tools-list', 'logging-set-level', 'server-sse-multiple-streams',
    'dns-rebinding-protection', 'server-session-lifecycle', 'resources-list', 'prompts-list',
  ],
  '2026-07-28': [
    'server-stateless', 'tools-list', 'caching', 'http-header-validation', 'http-custom-header-server-validation',
    'dns-rebinding-protection', 'server-sse-multiple-streams', 'sep-2164-resource-not-found',
    'input-required-result-unsupported-methods', 'resources-list', 'prompts-list',
  ],
};

// Why a scenario is not counted. Its messages must still fit the schema.
const fixture = 'needs a fixture of the suite that only its example server has';
const reasons = [
  [/^prompts-get/, 'this server has no prompts to get'],
  [/^completion-/, 'this server has no prompts or templates to complete'],
  [/^resources-(un)?subscribe$/, 'resources here do not announce changes, so subscribe is not declared'],
  [/^(tools-call|elicitation|input-required-result|json-schema|server-sse-polling|resources-)/, fixture],
];

const listing = execFileSync('conformance', ['list'], { encoding: 'utf8' });
const server = listing.slice(0, listing.indexOf('Client scenarios'));
let failed = 0;
let passed = 0;
for (const [revision, names] of Object.entries(counted)) {
  const all = [...server.matchAll(/- (\S+) \[([^\]]*)\]/g)].filter((m) => m[2].split(',').includes(revision)).map((m) => m[1]);
  for (const name of names) {
    if (!all.includes(name)) throw new Error(`${name} is no scenario of ${revision}`);
  }
  for (const name of all) {
    const dir = join(out, revision, name);
    const run = spawnSync('conformance', ['server', '--url', url, '--scenario', name, '--spec-version', revision, '-o', dir], {
      encoding: 'utf8', timeout: 60_000,
    });
    const file = readdirSync(dir, { recursive: true }).find((f) => f.endsWith('checks.json'));
    const checks = file ? JSON.parse(readFileSync(join(dir, file), 'utf8')) : [];
    // The suite marks what it could not look at, for want of a fixture, itself.
    const untestable = checks.filter((c) => c.details?.untestable);
    const bad = checks.filter((c) => c.status === 'FAILURE' && !c.details?.untestable);
    if (names.includes(name)) {
      const looked = checks.length - untestable.length;
      const ok = looked > 0 && bad.length === 0 && (run.status === 0 || untestable.length > 0);
      report(ok, `${revision} ${name}: ${looked} checks${untestable.length ? `, ${untestable.length} the suite calls untestable: ${untestable.map((c) => c.id).join(' ')}` : ''}`, bad, run);
      continue;
    }
    const wire = checks.filter((c) => c.id === 'wire-schema-valid');
    const why = (reasons.find(([re]) => re.test(name)) ?? [])[1];
    if (!why) throw new Error(`${name} is neither counted nor explained`);
    report(wire.every((c) => c.status === 'SUCCESS'), `${revision} ${name}: left out (${why}); messages fit the schema: ${wire.length || 'none sent'}`,
      wire.filter((c) => c.status !== 'SUCCESS'), run);
  }
}

function report(ok, line, bad, run) {
  if (ok) {
    passed++;
    console.log(`ok   ${line}`);
    return;
  }
  failed++;
  console.log(`FAIL ${line}`);
  for (const c of bad) console.log(`     ${c.id}: ${c.errorMessage ?? c.description} ${JSON.stringify(c.details ?? {}).slice(0, 600)}`);
  if (bad.length === 0) console.log(run.stdout?.slice(-2000), run.stderr?.slice(-2000));
}
console.log(`conformance: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
