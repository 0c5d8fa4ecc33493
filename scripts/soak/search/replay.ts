// Reads and writes scenarios as text: scenarios of failing seeds, and stored plans.
import * as z from 'zod';
import { messageOf } from '../../../policies/error-message.ts';
import type { Data } from '../../../simulation/faults/fault.ts';
import { type Scenario, scenarioSchema } from '../../../simulation/scenario.ts';

const planSchema = z.strictObject({
  /** The name in kebab case, such as `delete-after-takeover`. */
  name: z.string().min(1),
  /** The id of the failure: a violated invariant such as `S7`, or another failure such as `unfinished`. */
  finds: z.string().min(1),
  /** One or two sentences about the events and the defect. */
  why: z.string().min(1),
  ...scenarioSchema.shape,
});

/** A scenario that once found a defect. The tests play it again. */
export type StoredPlan = Data<typeof planSchema>;

/** The error for an invalid scenario or plan. It names the file and each invalid field. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

/** Reads a scenario, or with `name` the plan of that name from a list of plans. Throws a PlanError that names `source`. */
export function readScenario(text: string, source: string, name?: string): Scenario {
  if (name === undefined) return checked(scenarioSchema, parsed(text, source), source);
  const found = readPlans(text, source).find((plan) => plan.name === name);
  if (found === undefined) throw new PlanError(`${source} has no plan ${name}`);
  const { name: _, finds: __, why: ___, ...scenario } = found;
  return scenario;
}

/** Reads a list of stored plans. Throws a PlanError that names `source` and the plan. */
export function readPlans(text: string, source: string): readonly StoredPlan[] {
  const plans = parsed(text, source);
  if (!Array.isArray(plans)) throw new PlanError(`${source} is not a list of plans`);
  return plans.map((plan, index) => checked(planSchema, plan, `${source}#${plan?.name ?? index}`));
}

/** Returns the text of a scenario or of plans with short values on one line, so that a change of one fault changes one line. */
export function writeScenario(scenario: Scenario | readonly StoredPlan[]): string {
  return `${written(scenario, '', 0, true)}\n`;
}

function parsed(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PlanError(`${source} is not JSON: ${messageOf(error)}`);
  }
}

function checked<Schema extends typeof scenarioSchema>(schema: Schema, value: unknown, source: string): z.infer<Schema> {
  const result = schema.safeParse(value);
  if (!result.success) {
    const problems = result.error.issues.map((issue) => `  ${placeOf(issue.path)}: ${issue.message}`);
    throw new PlanError([`${source} cannot be played:`, ...problems].join('\n'));
  }
  const { events } = result.data;
  const late = events.find((event, index) => event.atMs < (events[index - 1]?.atMs ?? 0));
  if (late === undefined) return result.data;
  throw new PlanError(`${source} cannot be played:\n  events: ${late.kind} at ${late.atMs} ms comes after a later event`);
}

function placeOf(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text === '' ? 'the scenario' : text.replace(/^\./, '');
}

const lineWidth = 140;

/** Returns JSON with short values on one line. The first line already has `before` characters after its indent. */
function written(value: unknown, indent: string, before: number, isOpen = false): string {
  const flat = flatText(value);
  if (typeof value !== 'object' || value === null) return flat;
  if (!isOpen && indent.length + before + flat.length + 1 <= lineWidth) return flat;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((item) => inner + written(item, inner, 0)).join(',\n')}\n${indent}]`;
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return '{}';
  const lines = entries.map(([name, item]) => {
    const key = `${JSON.stringify(name)}: `;
    return `${inner}${key}${written(item, inner, key.length)}`;
  });
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

function flatText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flatText).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return '{}';
  return `{ ${entries.map(([name, item]) => `${JSON.stringify(name)}: ${flatText(item)}`).join(', ')} }`;
}
