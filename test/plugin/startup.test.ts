// The start-up budget as structure: what is not loaded cannot take time, on any machine.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { builtFolder } from './process.ts';

/** The files that loading this one loads at once, itself included. */
function loadedWith(file: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  for (const [, path = ''] of text.matchAll(/^(?:import|export)\s(?:[^'";]*?from\s*)?"(\.[^"]+)";$/gm))
    loadedWith(join(dirname(file), path), seen);
  return seen;
}

function texts(files: ReadonlySet<string>): string {
  return [...files].map((file) => readFileSync(file, 'utf8')).join('\n');
}

/** The chunk that a file loads on demand under this name. */
function chunk(file: string, name: string): string {
  const path = new RegExp(`import\\("(\\./[^"]*${name}-[A-Z0-9]+\\.mjs)"\\)`).exec(readFileSync(file, 'utf8'))?.[1];
  if (path === undefined) throw new Error(`${file} does not load ${name}`);
  return join(dirname(file), path);
}

describe('start-up', () => {
  const main = join(builtFolder(), 'kubectl-rollout_group');

  it('version loads less than 6 KB', () => {
    expect(texts(loadedWith(main)).length).toBeLessThan(6_000);
  });

  it('--help loads the description of the verbs and no package', () => {
    const help = texts(loadedWith(chunk(main, 'help')));
    expect(help.length).toBeLessThan(55_000);
    expect(help).not.toMatch(/node_modules\//);
  });

  it('completion of verbs and flags loads no package', () => {
    expect(texts(loadedWith(join(builtFolder(), 'kubectl_complete-rollout_group')))).not.toMatch(/node_modules\//);
  });

  it('parsing the command line loads commander and no other package', () => {
    const packages = [...texts(loadedWith(chunk(main, 'program'))).matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map(
      (match) => match[1],
    );
    expect([...new Set(packages)]).toEqual(['commander']);
  });
});
