// Writes the pages as a site: `npm run site -- [--output FOLDER] [--version VERSION]`. The generator is Sphinx, for the reasons in
// docs/decisions/documentation-site.md.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../../policies/error-message.ts';

/** The generator and the packages that it needs, each with the checksums of its files. */
const requirements = 'scripts/site/requirements.txt';

try {
  const { homepage, version: current } = JSON.parse(readFileSync('package.json', 'utf8'));
  const { values } = parseArgs({
    options: { output: { type: 'string', default: 'dist/site' }, version: { type: 'string', default: current } },
  });
  build(resolve(values.output), { SITE_VERSION: values.version, SITE_SOURCE: homepage.replace(/#.*$/, '') });
  process.stdout.write(`${values.output}/index.html written\n`);
} catch (error) {
  process.stderr.write(`error: ${messageOf(error)}\n`);
  process.exitCode = 1;
}

/** Builds the site in a new folder, and replaces the output with it. A dead link and a page outside the navigation are errors. */
function build(output: string, settings: Readonly<Record<string, string>>): void {
  const sphinx = join(generator(), 'bin', 'sphinx-build');
  mkdirSync(dirname(output), { recursive: true });
  const site = mkdtempSync(`${output}-`);
  const doctrees = mkdtempSync(join(tmpdir(), 'rollout-group-site-'));
  try {
    // The time of the commit, so that the same commit gives the same bytes.
    const time = run('git', ['log', '-1', '--format=%ct']);
    const env = { ...settings, SOURCE_DATE_EPOCH: time.trim(), LC_ALL: 'C.UTF-8', PYTHONHASHSEED: '0' };
    run(sphinx, ['-q', '-W', '--keep-going', '-c', 'scripts/site', '-d', doctrees, '.', site], env);
    // For the search of a running editor only, and with absolute paths of the machine.
    for (const name of ['.buildinfo', 'objects.inv']) rmSync(join(site, name), { force: true });
    writeFileSync(join(site, 'index.html'), '<!doctype html><meta http-equiv="refresh" content="0; url=docs/README.html">\n');
    rmSync(output, { recursive: true, force: true });
    renameSync(site, output);
  } finally {
    for (const folder of [site, doctrees]) rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the folder of the generator in the cache. Installs it if the cache lacks it. */
function generator(): string {
  const digest = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'rollout-group', `site-${digest}`);
  const installed = join(folder, 'installed');
  if (existsSync(installed)) return folder;
  rmSync(folder, { recursive: true, force: true });
  run('python3', ['-m', 'venv', folder]);
  const flags = ['--quiet', '--disable-pip-version-check', '--require-hashes', '--only-binary=:all:', '--no-deps'];
  run(join(folder, 'bin', 'pip'), ['install', ...flags, '-r', requirements]);
  writeFileSync(installed, '');
  return folder;
}

/** Returns the output. Throws with both outputs of a command that fails. */
function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, ...env } });
  if (status === 0) return stdout;
  const hint =
    command === 'python3' ? '\n  Install Python 3.11 or newer with its module venv. On Debian: apt-get install python3-venv' : '';
  throw new Error(`${command} ${args[0]} failed: ${error?.message ?? ''}${stdout}${stderr}${hint}`);
}
