// Compares both states with an external program, like kubectl diff: KUBECTL_EXTERNAL_DIFF, or diff by default.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { withoutSecrets } from '../../engine/diff/field-secrets.ts';
import type { CommandContext } from '../context.ts';
import { nameOf } from '../difference.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { toYaml } from './yaml.ts';

/** Runs the program on two folders of files and prints its output. Returns 1 if the program found differences. */
export function externalDiff(context: CommandContext, current: readonly ObjectContent[], desired: readonly ObjectContent[]): ExitCode {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-diff-'));
  try {
    writeSide(join(folder, 'CURRENT'), current, desired, 'before');
    writeSide(join(folder, 'DESIRED'), desired, current, 'after');
    const [program = 'diff', ...flags] = (context.env['KUBECTL_EXTERNAL_DIFF'] ?? '').split(' ').filter((word) => word !== '');
    const all = program === 'diff' && flags.length === 0 ? ['-u', '-N', '-r'] : flags;
    const { status, stdout, error } = spawnSync(program, [...all, 'CURRENT', 'DESIRED'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 256 * 1_048_576,
    });
    if (error !== undefined || status === null || status > 1) {
      throw new Failure({
        exitCode: exitCodes.usage,
        what: `${program} could not compare the manifests`,
        why: error?.message ?? `the program exited with ${status}`,
      });
    }
    context.stdout.write(stdout);
    return status === 1 ? exitCodes.differences : exitCodes.done;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeSide(folder: string, objects: readonly ObjectContent[], others: readonly ObjectContent[], side: 'before' | 'after'): void {
  mkdirSync(folder);
  const otherByName = new Map(others.map((object) => [nameOf(object), object]));
  for (const object of objects) {
    const name = nameOf(object);
    writeFileSync(join(folder, `${name.replace(/[^\w.-]+/g, '.')}.yaml`), toYaml(withoutSecrets(object, otherByName.get(name), side)));
  }
}
