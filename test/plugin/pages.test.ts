// A page that shows a command and its output shows what the command prints today.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { rulesWithoutException } from '../../policies/rollout/rules-without-exception.ts';
import { runInProcess } from './in-process.ts';

const pages = ['README.md', ...readdirSync('docs').flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : []))];
/** Commands of the verbs that need no cluster, without a pipe of the shell. */
const command = /^\$ kubectl rollout-group ((?:plan|simulate|test|docs) (?:[^|\n\\]|\\\n)*)\n/;

const shown = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(/^```\n(\$ kubectl rollout-group [\s\S]*?)^```$/gm)].flatMap(([, block = '']) => {
    const [line, words = ''] = block.match(command) ?? [];
    return line === undefined ? [] : [{ page, words: words.replace(/\\\n/g, ' ').trim().split(/\s+/), output: block.slice(line.length) }];
  }),
);

describe('a page that shows a command', () => {
  it('is found', () => expect(shown.map(({ page }) => page)).toContain('README.md'));

  it.each(shown)('$page shows the output of $words.0', async ({ words, output }) => {
    expect((await runInProcess(words)).stdout).toBe(output);
  });
});

describe('docs/people.md', () => {
  it('lists the rules that no exception can override', () => {
    const [, list = ''] = /every rule of the engine except\s+these:([^.]*)\./.exec(readFileSync('docs/people.md', 'utf8')) ?? [];
    expect([...list.matchAll(/`([^`]+)`/g)].map(([, rule]) => rule)).toEqual(rulesWithoutException);
  });
});
