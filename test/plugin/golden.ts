// Compares the views of one subject with one golden file, whose sections are the views.
import { expect } from 'vitest';
import type { TableLook } from '../../plugin/output/plan/table.ts';
import { look } from './plan-kit.ts';

const looks: Readonly<Record<string, { readonly columns: number; readonly colour?: boolean }>> = {
  '80 columns': { columns: 80 },
  '80 columns, colour': { columns: 80, colour: true },
  '120 columns': { columns: 120 },
  '120 columns, colour': { columns: 120, colour: true },
};

/** Renders a view in each look, by the title of its section. */
export function inEachLook(render: (at: TableLook) => string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(looks).map(([title, options]) => [title, render(look(options))]));
}

/** Runs each command in each look, and returns the outputs by the title of their sections. */
export async function outputsOf(
  commands: readonly (readonly string[])[],
  run: (words: readonly string[]) => Promise<{ readonly stdout: string }>,
): Promise<Readonly<Record<string, string>>> {
  const outputs: Record<string, string> = {};
  for (const words of commands) {
    for (const [title, { columns, colour = false }] of Object.entries(looks)) {
      const { stdout } = await run([...words, '--width', `${columns}`, `--color=${colour ? 'always' : 'never'}`]);
      outputs[`${words.join(' ')}: ${title}`] = stdout;
    }
  }
  return outputs;
}

/** Fails unless `golden/NAME.txt` has exactly these views, each below its title. With `-u`, vitest writes the file again. */
export async function expectGolden(name: string, views: Readonly<Record<string, string>>): Promise<void> {
  const sections = Object.entries(views).map(([title, text]) => `==== ${title} ====\n${text}`);
  await expect(sections.join('\n')).toMatchFileSnapshot(`golden/${name}.txt`);
}
