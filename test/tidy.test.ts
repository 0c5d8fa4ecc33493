import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const folders = ['policies', 'install', 'engine', 'review', 'cluster', 'agent', 'simulation', 'webhook', 'plugin'] as const;
type Folder = (typeof folders)[number];

/** What each part may import of ours (ARCHITECTURE.md). */
const mayImport: Readonly<Record<Folder, readonly Folder[]>> = {
  policies: [],
  install: ['policies', 'engine'],
  engine: ['policies'],
  review: ['policies', 'engine'],
  cluster: [],
  agent: ['policies', 'install', 'engine', 'cluster'],
  simulation: ['policies', 'install', 'engine', 'cluster', 'agent', 'webhook'],
  webhook: ['policies', 'install', 'engine', 'cluster'],
  plugin: ['policies', 'install', 'engine', 'review', 'cluster', 'simulation'],
};

/** Files that put parts together which otherwise know nothing of each other. */
const compositions: Readonly<Record<string, readonly Folder[]>> = { 'agent/process/serve-webhook.ts': ['webhook'] };

/** The files that are so low and so small that every part may import them. */
const everyPartMayImport: readonly string[] = ['policies/error-message.ts', 'policies/values/defined.ts'];

/** Packages that only some parts may import. */
const packagesOf: Readonly<Record<string, readonly Folder[]>> = {
  yaml: ['policies', 'install', 'plugin', 'agent', 'cluster', 'simulation'],
  'json-logic-js': ['policies'],
  re2js: ['policies'],
  '@noble/hashes': ['policies'],
  zod: ['policies', 'engine', 'simulation'],
  croner: ['policies'],
  luxon: ['policies'],
  commander: ['plugin', 'agent'],
  'jsonpath-plus': ['plugin'],
  'log-update': ['plugin'],
  diff: ['plugin'],
  express: ['webhook'],
  'node-forge': ['webhook'],
  '@kubernetes/client-node': ['cluster'],
  pino: ['agent'],
  'prom-client': ['agent'],
};

/** What the pure parts may not touch, with what to use instead. */
const impure: readonly (readonly [RegExp, string])[] = [
  [/\bDate\.now\(|\bnew Date\(\)/, 'time is a parameter: snapshot.nowMs'],
  [/\bMath\.random\(/, 'randomness is a parameter'],
  [/\bset(?:Timeout|Interval|Immediate)\(/, 'the engine names the instant; a shell waits for it'],
  [/\bprocess\./, 'a shell reads the process'],
  [/\bconsole\./, 'findings and results are values'],
  [/\bfetch\(/, 'inputs are gathered beforehand'],
  [/\bperformance\./, 'time is a parameter'],
];

/** What a simulated run may not touch, or it would not be the same the next time. */
const unrepeatable: readonly (readonly [RegExp, string])[] = [
  [/\bDate\.now\(|\bnew Date\(\)/, "time is the scheduler's"],
  [/\bMath\.random\(|\brandomUUID\(|\brandomBytes\(/, 'chance is drawn by seed and name'],
  [/\bset(?:Timeout|Interval)\(/, "time is the scheduler's"],
  [/\bperformance\./, "time is the scheduler's"],
];

function sources(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function imports(text: string): readonly string[] {
  return [...text.matchAll(/\b(?:from\s+|import\s+|import\s*\(\s*)'([^']+)'/g)].map((match) => match[1] ?? '');
}

/** The files that a file runs before itself: what is a type alone is gone by then. */
function runsFirst(file: string): readonly string[] {
  const statements = readFileSync(file, 'utf8').matchAll(/^(?:import|export) (type )?([^;]*?) from '(\.[^']+)';/gms);
  const isType = (names: string): boolean => names.startsWith('{') && names.split(',').every((name) => /^[{\s]*(?:type |\}|$)/.test(name));
  return [...statements].flatMap(([, type, names = '', target = '']) =>
    type === undefined && !isType(names) ? [join(file, '..', target)] : [],
  );
}

/** Files that would have to run before themselves, in their order. */
function circleIn(files: readonly string[]): readonly string[] {
  const next = new Map(files.map((file) => [file, runsFirst(file)]));
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const target of next.get(file) ?? []) {
      const circle = visit(target, [...path, file]);
      if (circle.length > 0) return circle;
    }
    done.add(file);
    return [];
  };
  return files.map((file) => visit(file, [])).find((circle) => circle.length > 0) ?? [];
}

describe('the import rule', () => {
  it('is followed without a circle', () => {
    expect(circleIn(folders.flatMap(sources))).toEqual([]);
  });

  for (const folder of folders) {
    it(`${folder}/ imports only what ARCHITECTURE.md allows`, () => {
      const broken: string[] = [];
      for (const file of sources(folder)) {
        for (const target of imports(readFileSync(file, 'utf8'))) {
          if (target.startsWith('.')) {
            const part = join(file, '..', target).split('/')[0] as Folder;
            const allowed = [...mayImport[folder], ...(compositions[file] ?? [])];
            const isAllowed = allowed.includes(part) || everyPartMayImport.includes(join(file, '..', target));
            if (part !== folder && folders.includes(part) && !isAllowed) broken.push(`${file} imports ${target}`);
            if (!/\.(ts|yaml|css|md)$/.test(target)) broken.push(`${file} imports ${target} without its extension`);
          } else if (target.startsWith('node:')) {
            if (['policies', 'install', 'engine', 'review'].includes(folder))
              broken.push(`${file} imports ${target}: ${folder}/ does no I/O`);
          } else {
            const name = target
              .split('/')
              .slice(0, target.startsWith('@') ? 2 : 1)
              .join('/');
            if (!packagesOf[name]?.includes(folder)) broken.push(`${file} imports the package ${name}`);
          }
        }
      }
      expect(broken).toEqual([]);
    });
  }

  it('leads from the executables to every file of the product', () => {
    const build = readFileSync('scripts/build.mjs', 'utf8');
    const reached = new Set<string>();
    const reach = (file: string): void => {
      if (reached.has(file) || !file.endsWith('.ts')) return;
      reached.add(file);
      for (const target of imports(readFileSync(file, 'utf8'))) if (target.startsWith('.')) reach(join(file, '..', target));
    };
    for (const [, entry = ''] of build.matchAll(/^ {2}\S+: '(\w+\/[^']+\.ts)'/gm)) reach(entry);
    const files = folders.flatMap(sources).filter((file) => !file.endsWith('.d.ts'));
    expect(files.filter((file) => !reached.has(file))).toEqual([]);
  });

  it('policies/, engine/ and review/ read no clock, no randomness and no environment', () => {
    const broken: string[] = [];
    for (const file of [...sources('policies'), ...sources('engine'), ...sources('review')]) {
      const text = readFileSync(file, 'utf8').replace(/\/\/.*$|\/\*[\s\S]*?\*\//gm, '');
      for (const [pattern, instead] of impure) if (pattern.test(text)) broken.push(`${file}: ${pattern.source}: ${instead}`);
    }
    expect(broken).toEqual([]);
  });

  it('simulation/ and the scenarios of the soak read no clock and no randomness but their own', () => {
    const broken: string[] = [];
    for (const file of [...sources('simulation'), ...sources('scripts/soak/search')]) {
      const text = readFileSync(file, 'utf8').replace(/\/\/.*$|\/\*[\s\S]*?\*\//gm, '');
      for (const [pattern, instead] of unrepeatable) if (pattern.test(text)) broken.push(`${file}: ${pattern.source}: ${instead}`);
    }
    expect(broken).toEqual([]);
  });
});

describe('rollout strategies', () => {
  const owners = /^(?:engine\/strategies\/|policies\/strategies\.ts$|policies\/schema\/)/;
  const name = "'(?:pinned|partition|onDelete)'";
  // The kind of a placement has a name of its own.
  const compared = new RegExp(`(?<!\\.kind )[=!]== ${name}|\\bcase ${name}|${name} [=!]==`);
  const listed = new RegExp(`${name}\\s*[,|]\\s*${name}`);

  it('are asked for a property, never for their name', () => {
    const broken = folders
      .flatMap(sources)
      .filter((file) => !owners.test(file))
      .filter((file) => {
        const text = readFileSync(file, 'utf8').replace(/\/\/.*$|\/\*[\s\S]*?\*\/|Pick<[^>]*>/gm, '');
        return compared.test(text) || listed.test(text);
      });
    expect(broken).toEqual([]);
  });
});

/** Words that CONTRIBUTING.md refuses, with what to write instead. */
const refusedWords: readonly (readonly [string, string])[] = [
  ['nobody|somebody|whoever|whatever', 'name the person or thing'],
  ['anew', 'again'],
  ['beside', 'next to, or besides'],
  ['thereby|thereof|hereby', 'a second sentence'],
  ['in its place', 'instead'],
  ['(?:take|takes|taken|took|taking) (?:back|away)', 'revert, remove, delete'],
  ['of (?:its|their) own', 'its own X'],
  ['(?:is|are|has) none', 'is not, has no'],
  ['let go|lets? [^.]{1,40}\\bgo', 'delete, evict, allow'],
  ['goes back to being|what there is|as it stands', 'the state itself'],
  ['for ever', 'without limit'],
];

/** Sources and pages that people read. */
function proseFiles(): readonly string[] {
  const pages = ['docs', 'examples'].flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.(?:md|yaml)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const roots = readdirSync('.').filter((name) => name.endsWith('.md'));
  return [...folders.flatMap(sources), ...pages, ...roots].sort();
}

/** `file:line` of each match in the files. */
function placesOf(files: readonly string[], pattern: RegExp): readonly string[] {
  return files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim().slice(0, 120)}`] : [])),
  );
}

describe('the language', () => {
  it.each(refusedWords)('contains none of the words %s (write: %s)', (words) => {
    expect(placesOf(proseFiles(), new RegExp(`\\b(?:${words})\\b`, 'i'))).toEqual([]);
  });

  it('contains none of these words in the title of a test', () => {
    const words = new RegExp(`\\b(?:${refusedWords.map(([one]) => one).join('|')})\\b`, 'i');
    const titles = sources('test').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/\b(?:it|describe)\b[^'"`\n]*\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g)].map(([, , title = '']) => ({
        file,
        title,
      })),
    );
    expect(titles.filter(({ title }) => words.test(title))).toEqual([]);
  });

  it('contains none of these words in a scenario', () => {
    const words = new RegExp(`\\b(?:${refusedWords.map(([one]) => one).join('|')})\\b`, 'i');
    const scenarios = readdirSync('test/scenarios', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.txt'));
    expect(
      placesOf(
        scenarios.map((name) => join('test/scenarios', name)),
        words,
      ),
    ).toEqual([]);
  });

  it('opens no comment with a clause that has no head', () => {
    const headless = /^\s*(?:\/\*\*|\/\/) (?:What|Who|Whom|Whose|Whether|Of|Where|Which|How)\b/;
    expect(placesOf(folders.flatMap(sources), headless)).toEqual([]);
  });
});

describe('the house style', () => {
  const all = [...folders, 'scripts', 'test'].flatMap(sources);

  it('keeps files to one idea: at most 500 lines', () => {
    expect(all.filter((file) => readFileSync(file, 'utf8').split('\n').length > 501)).toEqual([]);
  });

  it('starts every source file with a sentence that says what it knows', () => {
    const silent = folders.flatMap(sources).filter((file) => !/^(?:#!.*\n)?(?:\/\/|\/\*\*)/.test(readFileSync(file, 'utf8')));
    expect(silent).toEqual([]);
  });

  it('compares the name of a profile nowhere: rules read the rows of engine/profiles.ts', () => {
    const known = ['engine/profiles.ts', 'policies/schema/', 'policies/adopt/'];
    const name = /'rolloutOperator'|\bprofile [!=]== '/;
    const comparing = [...folders, 'scripts'].flatMap(sources).filter((file) => !known.some((path) => file.startsWith(path)));
    expect(comparing.filter((file) => name.test(readFileSync(file, 'utf8')))).toEqual([]);
  });

  it('exports nothing that no file imports', () => {
    const imported = new Map<string, Set<string>>();
    for (const file of [...all, ...readdirSync('scripts').map((name) => join('scripts', name))]) {
      if (!/\.m?[jt]s$/.test(file)) continue;
      const text = readFileSync(file, 'utf8');
      for (const [, names = '', target = ''] of text.matchAll(
        /\b(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\* as \w+)\s*from\s*'(\.[^']+)'/g,
      )) {
        const used = imported.get(join(file, '..', target)) ?? new Set();
        for (const name of names.replace(/[{}]/g, '').split(','))
          used.add(
            name
              .trim()
              .replace(/^type /, '')
              .split(/ as /)[0] ?? '',
          );
        imported.set(join(file, '..', target), names.startsWith('*') ? used.add('*') : used);
      }
      // A file that is loaded on demand, or typed by an import, shows what it exports at run time.
      for (const [, target = ''] of text.matchAll(/\bimport\(\s*'(\.[^']+)'/g)) {
        imported.set(join(file, '..', target), (imported.get(join(file, '..', target)) ?? new Set()).add('*'));
      }
    }
    const unused = folders.flatMap(sources).flatMap((file) => {
      const used = imported.get(file) ?? new Set();
      const declared = readFileSync(file, 'utf8').matchAll(
        /^export (?:abstract |async )?(?:function\*?|const|let|class|interface|type) (\w+)/gm,
      );
      return used.has('*') ? [] : [...declared].flatMap(([, name = '']) => (used.has(name) ? [] : [`${file}: ${name}`]));
    });
    expect(unused).toEqual([]);
  });

  it('leaves no reminder behind', () => {
    const words = new RegExp(['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X'].map((word) => `\\b${word}\\b`).join('|'));
    expect(all.filter((file) => words.test(readFileSync(file, 'utf8')))).toEqual([]);
  });
});
