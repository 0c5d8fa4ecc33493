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

/** The chunks that a file loads on demand under this name. */
function chunks(file: string, name: string): readonly string[] {
  const paths = readFileSync(file, 'utf8').matchAll(new RegExp(`import\\("(\\./(?:[^"]*/)?${name}-[A-Z0-9]+\\.mjs)"\\)`, 'g'));
  return [...paths].map(([, path = '']) => join(dirname(file), path));
}

function chunk(file: string, name: string): string {
  const [path] = chunks(file, name);
  if (path === undefined) throw new Error(`${file} does not load ${name}`);
  return path;
}

/** The packages whose code the text contains. */
function packagesIn(text: string): readonly (string | undefined)[] {
  return [...new Set([...text.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map((match) => match[1]))];
}

describe('start-up', () => {
  const main = join(builtFolder(), 'kubectl-rollout_group');

  it('version loads less than 6 KB', () => {
    expect(texts(loadedWith(main)).length).toBeLessThan(6_000);
  });

  it('--help loads the description of the verbs and no package', () => {
    const help = texts(loadedWith(chunk(main, 'help')));
    expect(help.length).toBeLessThan(58_000);
    expect(help).not.toMatch(/node_modules\//);
  });

  it('completion of verbs and flags loads no package', () => {
    expect(texts(loadedWith(join(builtFolder(), 'kubectl_complete-rollout_group')))).not.toMatch(/node_modules\//);
  });

  it('completion from the cluster loads no engine, and no package but the one that reads a kubeconfig', () => {
    const complete = join(builtFolder(), 'kubectl_complete-rollout_group');
    const cluster = [...loadedWith(complete)].flatMap((file) => chunks(file, 'cluster-candidates'))[0] ?? '';
    const names = chunk(cluster, 'cluster-names');
    const loaded = new Set(
      [...loadedWith(names)].flatMap((file) => [file, ...chunks(file, '(?:kubeconfig|transport|read-only|connection-failure)')]),
    );
    const text = texts(new Set([...loaded].flatMap((file) => [...loadedWith(file)])));
    expect(packagesIn(text)).toEqual(['yaml']);
    expect(text).not.toContain('// engine/decide/');
  });

  it('parsing the command line loads commander and no other package', () => {
    expect(packagesIn(texts(loadedWith(chunk(main, 'program'))))).toEqual(['commander']);
  });
});
