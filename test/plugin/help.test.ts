import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../plugin/failure.ts';
import { helpSections } from '../../plugin/help.ts';
import { helpText } from '../../plugin/output/text.ts';
import { verbs } from '../../plugin/verbs/all.ts';
import { commandLineMarkdown } from './command-line-page.ts';
import { expectGolden, outputsOf } from './golden.ts';
import { runInProcess } from './in-process.ts';
import { runPlugin } from './process.ts';

describe('help', () => {
  it('of the program and of a verb fits each width, with and without colour', async () => {
    await expectGolden('help', await outputsOf([['--help'], ['lint', '--help']], async (words) => runPlugin(words)));
  });

  it('is the same with and without the parser', () => {
    expect(runPlugin(['lint', '--help']).stdout).toBe(runPlugin(['lint', '--help', '--color=auto']).stdout);
    expect(runPlugin([]).stdout).toBe(runPlugin(['--help', '-q']).stdout);
  });

  it('exists for every verb, on standard output, within 80 columns, with examples that a shell accepts', async () => {
    for (const verb of verbs) {
      const { name } = verb;
      const { status, stdout, stderr } = await runInProcess([name, '--help']);
      expect([status, stderr]).toEqual([0, '']);
      expect(helpText(helpSections(name) ?? [], { columns: 80, paint: (_, text) => text })).toBe(stdout);
      expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
      const unwrapped = stdout.replaceAll(/ \\\n +/g, ' ');
      for (const example of verb.examples) expect(unwrapped).toContain(`\n  kubectl rollout-group ${example}\n`);
    }
  });
});

describe('the documentation', () => {
  it('docs/command-line.md equals the help of the verbs', async () => {
    await expect(commandLineMarkdown()).toMatchFileSnapshot('../../docs/command-line.md');
  });

  it('docs/exit-codes.md has every exit code', () => {
    const text = readFileSync('docs/exit-codes.md', 'utf8');
    for (const code of Object.values(exitCodes)) expect(text).toContain(`| ${code} |`);
  });

  it('every page of docs/ is a topic', () => {
    const pages = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'README.md');
    const { topics } = JSON.parse(runPlugin(['docs', '-o', 'json']).stdout);
    expect(topics.map(({ name }: { name: string }) => `${name}.md`).sort()).toEqual(pages.sort());
  });
});
