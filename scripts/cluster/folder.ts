// The folder of a running cluster: .cluster, or the next free name next to clusters that run.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Creates the folder. Replaces the folder of a cluster whose process has ended. */
export function createFolder(): string {
  for (let number = 1; ; number++) {
    const folder = number === 1 ? '.cluster' : `.cluster-${number}`;
    if (isInUse(folder)) continue;
    rmSync(folder, { recursive: true, force: true });
    try {
      mkdirSync(folder);
    } catch (error) {
      // Another cluster created the folder at the same time.
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') continue;
      throw error;
    }
    writeFileSync(join(folder, 'pid'), `${process.pid}\n`);
    return folder;
  }
}

function isInUse(folder: string): boolean {
  try {
    return process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 0);
  } catch {
    return false;
  }
}
