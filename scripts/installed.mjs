// Installs the dependencies if they differ from the lock file, so that `npm start` and `npm test` work right after a clone.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';

const marker = 'node_modules/.package-lock.json';
const isCurrent = existsSync(marker) && hasEveryPackage(packagesIn(marker), packagesIn('package-lock.json'));
// `npm ci` would delete the packages behind a symbolic link, which belong to another checkout.
const isLink = lstatSync('node_modules', { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
if (!isCurrent && isLink)
  process.stderr.write('node_modules is a symbolic link: its packages are used, even if they differ from the lock file\n');
if (!isCurrent && !isLink) {
  process.stderr.write('installing dependencies (once) ...\n');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { status } = spawnSync(npm, ['ci', '--no-fund', '--no-audit', '--loglevel=error'], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}

function packagesIn(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages ?? {};
}

/** Compares versions and not times: a copied directory or a new checkout has other times. Packages for other platforms may be absent. */
function hasEveryPackage(installed, locked) {
  return Object.entries(locked).every(
    ([path, { version, optional }]) =>
      path === '' || (installed[path] === undefined ? optional === true : installed[path].version === version),
  );
}
