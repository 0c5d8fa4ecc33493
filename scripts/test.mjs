// Runs every suite and closes with one line that sums them up: `N passed, N failed[, N skipped]`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'rollout-group-test-'));
const report = join(folder, 'report.json');
const built = spawnSync(process.execPath, ['scripts/build.mjs', '--quiet'], { stdio: 'inherit' });
if (built.status !== 0) process.exit(built.status ?? 1);
const reporter = process.env['CI'] ? 'default' : 'dot';
const run = spawnSync(
  process.execPath,
  [
    'node_modules/vitest/vitest.mjs',
    'run',
    `--reporter=${reporter}`,
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...process.argv.slice(2),
  ],
  // CI counts as a terminal for the runner, yet what is written to a file or a pipe should hold no escape byte.
  { stdio: 'inherit', env: process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: '1' } },
);
let summary = { passed: 0, failed: 1, skipped: 0 };
try {
  const result = JSON.parse(readFileSync(report, 'utf8'));
  // A file that cannot be loaded has no test to count, yet must not pass for a success.
  const broken = result.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
  summary = {
    passed: result.numPassedTests,
    failed: result.numFailedTests + broken,
    skipped: result.numPendingTests + result.numTodoTests,
  };
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (run.status !== 0 && summary.failed === 0) summary.failed = 1;
process.stdout.write(`${summary.passed} passed, ${summary.failed} failed${summary.skipped > 0 ? `, ${summary.skipped} skipped` : ''}\n`);
process.exit(run.status ?? 1);
