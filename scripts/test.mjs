// Runs test suites and prints one last line for all of them: `N passed, N failed[, N skipped]`. Each `--config FILE` adds a run with that
// vitest configuration; `--config -` is the default configuration, which also applies without options. `--also FILE` adds the counts of
// another tool, as JSON with `passed` and `failed`. All other arguments go to every run.
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

/** Runs one suite and returns its counts. A run with a bad exit code counts as at least one failure. */
function run(config, report) {
  // By default vitest leaves one processor idle. The suites on a control plane set their own number of workers.
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...(config === '-' ? ['--maxWorkers=100%'] : ['--config', config])];
  const { status } = spawnSync(
    process.execPath,
    [...args, '--reporter=dot', '--reporter=json', `--outputFile.json=${report}`, ...rest],
    // Vitest prints colours in CI, but output to a file or a pipe must not contain escape sequences.
    { stdio: 'inherit', env: process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: '1' } },
  );
  const counts = countsOf(report);
  return { ...counts, failed: Math.max(counts.failed, status === 0 ? 0 : 1) };
}

function countsOf(report) {
  try {
    const result = JSON.parse(readFileSync(report, 'utf8'));
    // A file that cannot be loaded has no tests to count, so it counts as one failure.
    const broken = result.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
    const skipped = result.numPendingTests + result.numTodoTests;
    return { passed: result.numPassedTests, failed: result.numFailedTests + broken, skipped, names: failedIn(result) };
  } catch {
    return { passed: 0, failed: 1, skipped: 0, names: [`no report: ${report}`] };
  }
}

/**
 * Returns one line per failure: file, test and the start of the error. These lines are printed last, because a log may be cut at its
 * start.
 */
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

/** Returns the counts of another tool. A file that cannot be read counts as one failure. */
function alsoCounted(report) {
  try {
    const { passed, failed } = JSON.parse(readFileSync(report, 'utf8'));
    if (Number.isInteger(passed) && Number.isInteger(failed)) return { passed, failed };
  } catch {
    // The file is missing or incomplete.
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
