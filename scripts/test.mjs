// Runs suites and closes with one line that sums them up: `N passed, N failed[, N skipped]`. Each `--config FILE` names a run of its own, and
// `--config -` the usual one; `--also FILE` adds what a run of another kind has counted, as JSON with `passed` and `failed`; what is left goes to
// every run. Without any, the usual suites run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const configs = [];
const reports = [];
const rest = [];
for (let index = 2; index < process.argv.length; index++) {
  if (process.argv[index] === '--config') configs.push(process.argv[++index]);
  else if (process.argv[index] === '--also') reports.push(process.argv[++index]);
  else rest.push(process.argv[index]);
}
if (configs.length === 0) configs.push('-');

const built = spawnSync(process.execPath, ['scripts/build.mjs', '--quiet'], { stdio: 'inherit' });
if (built.status !== 0) process.exit(built.status ?? 1);
const folder = mkdtempSync(join(tmpdir(), 'rollout-group-test-'));

/** Counts of one run. A run that ends badly has at least one failure, whatever its report says. */
function run(config, report) {
  // By default vitest leaves one processor idle. The suites on a control plane have their own number of workers.
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...(config === '-' ? ['--maxWorkers=100%'] : ['--config', config])];
  const { status } = spawnSync(
    process.execPath,
    [...args, '--reporter=dot', '--reporter=json', `--outputFile.json=${report}`, ...rest],
    // CI counts as a terminal for the runner, yet what is written to a file or a pipe should hold no escape byte.
    { stdio: 'inherit', env: process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: '1' } },
  );
  const counts = countsOf(report);
  return { ...counts, failed: Math.max(counts.failed, status === 0 ? 0 : 1) };
}

function countsOf(report) {
  try {
    const result = JSON.parse(readFileSync(report, 'utf8'));
    // A file that cannot be loaded has no test to count, yet must not pass for a success.
    const broken = result.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
    const skipped = result.numPendingTests + result.numTodoTests;
    return { passed: result.numPassedTests, failed: result.numFailedTests + broken, skipped, names: failedIn(result) };
  } catch {
    return { passed: 0, failed: 1, skipped: 0, names: [`no report: ${report}`] };
  }
}

/** A line for each: the file, the test and the first words of its error. Kept for the end, where a log that was cut still has it. */
function failedIn({ testResults }) {
  const line = (file, test, message = '') => `${relative('.', file)} > ${test}: ${message.split('\n')[0].slice(0, 200)}`;
  return testResults.flatMap(({ name, status, message, assertionResults }) =>
    status === 'failed' && assertionResults.length === 0
      ? [line(name, 'could not be run', message)]
      : assertionResults
          .filter((test) => test.status === 'failed')
          .map(({ fullName, failureMessages }) => line(name, fullName, failureMessages[0])),
  );
}

/** What cannot be read has not passed. */
function alsoCounted(report) {
  try {
    const { passed, failed } = JSON.parse(readFileSync(report, 'utf8'));
    if (Number.isInteger(passed) && Number.isInteger(failed)) return { passed, failed };
  } catch {
    // It was not written, or not to its end.
  }
  return { passed: 0, failed: 1 };
}

const startedAt = Date.now();
const sum = { passed: 0, failed: 0, skipped: 0 };
const failed = [];
try {
  for (const [index, config] of configs.entries()) {
    const beganAt = Date.now();
    const counts = run(config, join(folder, `report-${index}.json`));
    for (const key of Object.keys(sum)) sum[key] += counts[key];
    failed.push(...counts.names);
    if (configs.length > 1) {
      const share = `${Math.round((Date.now() - beganAt) / 1000)} s of ${Math.round((Date.now() - startedAt) / 1000)} s`;
      process.stdout.write(`${config === '-' ? 'suites without a control plane' : config}: ${share}\n`);
    }
  }
  for (const report of reports) {
    const counts = alsoCounted(report);
    for (const key of Object.keys(counts)) sum[key] += counts[key];
    process.stdout.write(`${report}: ${counts.passed} passed, ${counts.failed} failed\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const one of failed) process.stdout.write(`failed: ${one}\n`);
process.stdout.write(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}\n`);
process.exit(sum.failed > 0 ? 1 : 0);
