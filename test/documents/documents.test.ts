// The commands that pages show are run, and print what the pages show. This suite runs those that need no cluster.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { rulesWithoutException } from '../../policies/rollout/rules-without-exception.ts';
import { differences, exactly, readPage, rewritten, runSession, type Session, withoutTimes } from './page.ts';
import { checkPage, createScratch, readPages } from './scratch.ts';

const pages = readPages();
/** The number of blocks that no suite runs. It may fall. Each has its reason in the page. */
const blocksNotRun = 27;

describe('the commands of the pages', () => {
  it('are in blocks that a suite runs', () => {
    expect([...pages].flatMap(([name, { untagged }]) => untagged.map((line) => `${name}:${line}`))).toEqual([]);
  });

  it('are run, except a few with a reason', () => {
    const notRun = [...pages].flatMap(([name, page]) => page.notRun.map(({ line, reason }) => `${name}:${line}: ${reason}`));
    process.stderr.write(`${notRun.length} blocks of the pages are not run, or not all of their commands\n`);
    expect(notRun.length, notRun.join('\n')).toBeLessThanOrEqual(blocksNotRun);
  });

  const needsNone = ({ cluster }: Session): boolean => cluster === undefined;
  it.each([...pages].flatMap(([name, { sessions }]) => (sessions.some(needsNone) ? [name] : [])))(
    'print what %s shows',
    async (name) => {
      expect(await checkPage(name, needsNone)).toBe('');
      // The machine may do other work.
    },
    600_000,
  );
});

describe('docs/people.md', () => {
  it('lists the rules that no exception can override', () => {
    const [, list = ''] = /every rule of the engine except\s+these:([^.]*)\./.exec(readFileSync('docs/people.md', 'utf8')) ?? [];
    expect([...list.matchAll(/`([^`]+)`/g)].map(([, rule]) => rule)).toEqual(rulesWithoutException);
  });
});

describe('the check of a page', () => {
  const markdown = (shown: string): string => `# A page

<!-- before: printf 'a  1s ago\\n' > file -->

   \`\`\`console
   $ cat \\
       file
   ${shown}
   $ cat missing  # exit code 1
   ...
   $ false # exit code 1
   \`\`\`
`;
  const run = async (page: string) => {
    const scratch = createScratch();
    const shell = { cwd: scratch.folder, env: scratch.env, timeoutSeconds: 20 };
    const ran = await runSession({ commands: readPage(page).sessions.flatMap(({ commands }) => commands) }, shell);
    scratch.remove();
    return ran;
  };

  it('accepts the output, and lines that the page leaves out', async () => {
    expect(differences(await run(markdown('a  1s ago')), exactly)).toEqual([]);
    expect(differences(await run(markdown('a 35m ago')), withoutTimes)).toEqual([]);
    const told = (pod: string, age: string) => withoutTimes(`decided ${age} ago by agent-${pod}, policy f594467\n`);
    expect(told('66fbd9cc45-jblm8_7a0e2337', '3s')).toBe(told('d46ddc76d-6pzlp_f89be5b8', '1m10s'));
  });

  it('finds a wrong output, a wrong exit code and a command that does not end, and writes the output into the page', async () => {
    const wrong = markdown('b  1s ago');
    const ran = await run(wrong);
    for (const mask of [exactly, withoutTimes]) expect(differences(ran, mask)).toEqual([expect.stringContaining('line 6: cat')]);
    expect(differences(await run(markdown('a 35m ago')), exactly)).toHaveLength(1);
    expect(rewritten(wrong, ran, exactly)).toBe(markdown('a  1s ago'));
    expect(differences(await run('```sh\nfalse\ntrue # exit code 2\nexit 0\n```'), exactly)).toEqual([
      expect.stringContaining('line 2: exit code 1, not 0: false'),
      expect.stringContaining('line 3: exit code 0, not 2: true'),
      expect.stringContaining('line 4: exit code -1, not 0: exit 0'),
    ]);
  });

  it('finds an output that the page does not show, and one that is shown but not printed', async () => {
    expect(differences(await run('```console\n$ echo one\n$ echo two\n```'), exactly)).toHaveLength(2);
    expect(differences(await run('```console\n$ true\none\n```'), exactly)).toHaveLength(1);
  });

  it('reads clusters, blocks that are not run, and commands in blocks without a tag', () => {
    const page = readPage(
      '```sh\none\n```\n<!-- cluster: examples/kafka -->\n<!-- not run: because\nof this -->\n```sh\ntwo\n```\n```sh\nthree\n```\n' +
        '```\nnpm run x\n```\n```sh\nnpm run cluster -- --break\n```\n```sh\nfour\n```\n<!-- cluster: none -->\n```sh\nfive\n```\n',
    );
    expect(page.sessions.map(({ cluster, commands }) => [cluster, ...commands.map(({ typed }) => typed)])).toEqual([
      [undefined, 'one'],
      ['examples/kafka', 'three'],
      ['--break', 'four'],
      [undefined, 'five'],
    ]);
    expect([page.notRun, page.untagged]).toEqual([[{ line: 7, reason: 'because\nof this' }], [14]]);
  });
});
