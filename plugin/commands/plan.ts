// The verb plan: what would happen, in every format, and an exit code that a pipeline can act upon.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Plan } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, mostSevere } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { writeErrors } from '../output/file-errors.ts';
import { writeDocument } from '../output/formats.ts';
import { type PlanInputOptions, readPlanInputs } from '../source/plan-inputs.ts';

export type PlanFormat = 'table' | 'wide' | 'json' | 'yaml' | 'markdown' | 'html';

export interface PlanOptions extends PlanInputOptions {
  readonly out?: string;
  readonly detailedExitcode?: boolean;
  readonly output: PlanFormat;
}

export async function run(context: CommandContext, options: PlanOptions): Promise<ExitCode> {
  const { input, errors } = await readPlanInputs(context, options);
  if (errors.length > 0) return writeErrors(context, errors);
  const plan = planGroups(input);
  if (options.out !== undefined) save(plan, resolve(context.cwd, options.out), options.out);
  await writePlan(context.stdout, options.output, plan);
  suggest(context, options, plan);
  return exitCodeOf(plan, options.detailedExitcode === true);
}

/** Each format is loaded only when it is asked for. */
async function writePlan(stream: OutputStream, format: PlanFormat, plan: Plan): Promise<void> {
  switch (format) {
    case 'table':
    case 'wide': {
      const { renderPlanTable } = await import('../output/plan-table.ts');
      return stream.write(renderPlanTable(plan, { ...stream, isWide: format === 'wide' }));
    }
    case 'json':
    case 'yaml':
      return writeDocument(stream, format, { ...plan });
    case 'markdown':
      return stream.write((await import('../output/plan-markdown.ts')).renderPlanMarkdown(plan));
    case 'html':
      return stream.write((await import('../output/plan-html.ts')).renderPlanHtml(plan));
  }
}

function save(plan: Plan, path: string, shown: string): void {
  try {
    writeFileSync(path, `${JSON.stringify(plan, null, 2)}\n`);
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Failure({ exitCode: exitCodes.notAllowed, what: `${shown} cannot be written`, why });
  }
}

/** A refusal is an answer that nobody may miss; a plan that only waits is carried out as far as it goes. */
function exitCodeOf({ groups }: Plan, isDetailed: boolean): ExitCode {
  return mostSevere(
    groups.map(({ outcome }) => {
      if (outcome === 'blocked') return exitCodes.refused;
      return isDetailed && outcome !== 'unchanged' ? exitCodes.changes : exitCodes.done;
    }),
  );
}

function suggest(context: CommandContext, options: PlanOptions, plan: Plan): void {
  if (options.output !== 'table' && options.output !== 'wide') return;
  const inputs = inputWords(options);
  const held = plan.groups.find((group) => group.outcome === 'blocked' || group.outcome === 'waits');
  if (plan.outcome === 'unchanged') suggestNext(context, `plan ${inputs} --set image=...`);
  else if (held !== undefined) suggestNext(context, `explain ${held.namespace}/${held.group} ${inputs}`);
  else suggestNext(context, `simulate ${inputs}`, `plan ${inputs} -o html > plan.html`);
}

/** The options that name the same inputs, for a command to copy. */
function inputWords({ current, desired, file = [], set = [] }: PlanInputOptions): string {
  const word = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  return [
    ...(current === undefined ? [] : [`--current ${word(current)}`]),
    ...(desired === undefined ? [] : [`--desired ${word(desired)}`]),
    ...file.map((one) => `-f ${word(one)}`),
    ...set.map((one) => `--set ${word(one)}`),
  ].join(' ');
}
