// Installs the dependencies if they are missing or older than the lock file, so that `npm start` and `npm test` work right after a clone.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, statSync } from 'node:fs';

const marker = 'node_modules/.package-lock.json';
const isCurrent = existsSync(marker) && statSync(marker).mtimeMs >= statSync('package-lock.json').mtimeMs;
// `npm ci` would delete the packages behind a symbolic link, which belong to another checkout.
const isLink = lstatSync('node_modules', { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
if (!isCurrent && isLink)
  process.stderr.write('node_modules is a symbolic link: its packages are used, even if they are older than the lock file\n');
if (!isCurrent && !isLink) {
  process.stderr.write('installing dependencies (once) ...\n');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { status } = spawnSync(npm, ['ci', '--no-fund', '--no-audit', '--loglevel=error'], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}
