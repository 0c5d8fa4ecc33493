// Scenarios as text: what a failing seed leaves behind, and what is kept of it for good.
import type { z } from 'zod';
import { messageOf } from '../../policies/error-message.ts';
import type { Scenario } from '../scenario.ts';
import { planSchema, scenarioSchema } from './schema.ts';

/** A scenario that has found something once, and is played again with every test run. */
export interface StoredPlan extends Scenario {
  /** In the words of a file name, such as `delete-after-takeover`. */
  readonly name: string;
  /** What it found: an invariant such as `S7`, or the name of a defect that was put in on purpose. */
  readonly finds: string;
  /** One or two sentences: what happens in it, and what was wrong. */
  readonly why: string;
}

/** A text that is no scenario, or no plan: says of which file, and each place in it at which something is wrong. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

/** Reads a scenario, or a stored plan as one. `source` is named in what is thrown: a PlanError. */
export function readScenario(text: string, source: string): Scenario {
  const value = parsed(text, source);
  const isPlan = typeof value === 'object' && value !== null && 'finds' in value;
  if (!isPlan) return ordered(checked(scenarioSchema, value, source), source);
  const { name: _, finds: __, why: ___, ...scenario } = readPlan(text, source);
  return scenario;
}

/** Reads a stored plan. `source` is named in what is thrown: a PlanError. */
export function readPlan(text: string, source: string): StoredPlan {
  return ordered(checked(planSchema, parsed(text, source), source), source) as StoredPlan;
}

/** The text of a scenario or plan: short values on one line each, so that a change of one fault is a change of one line. */
export function writeScenario(scenario: Scenario | StoredPlan): string {
  return `${written(scenario, '', 0, true)}\n`;
}

function parsed(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PlanError(`${source} is no JSON: ${messageOf(error)}`);
  }
}

function checked(schema: z.ZodType, value: unknown, source: string): Scenario {
  const result = schema.safeParse(value);
  // The schema says the same as the type; it does so in another language, and the compiler cannot compare the two.
  if (result.success) return result.data as Scenario;
  const problems = result.error.issues.map((issue) => `  ${placeOf(issue.path)}: ${issue.message}`);
  throw new PlanError([`${source} cannot be played:`, ...problems].join('\n'));
}

function ordered(scenario: Scenario, source: string): Scenario {
  const late = scenario.events.find((event, index) => event.atMs < (scenario.events[index - 1]?.atMs ?? 0));
  if (late !== undefined)
    throw new PlanError(`${source} cannot be played:\n  events: ${late.kind} at ${late.atMs} ms stands after a later one`);
  return scenario;
}

/** Such as `events[3].zone`. */
function placeOf(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text === '' ? 'the whole' : text.replace(/^\./, '');
}

const lineWidth = 140;

/** JSON, with what fits on a line on one line. `before` characters of the first line are taken already. */
function written(value: unknown, indent: string, before: number, isOpen = false): string {
  const flat = flatText(value);
  if (typeof value !== 'object' || value === null) return flat;
  if (!isOpen && !needsLines(value) && indent.length + before + flat.length + 1 <= lineWidth) return flat;
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

/** A list of several objects has a line for each, however short they are. */
function needsLines(value: object): boolean {
  return Array.isArray(value) && value.length > 1 && value.some((item) => typeof item === 'object' && item !== null);
}

function flatText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flatText).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return '{}';
  return `{ ${entries.map(([name, item]) => `${JSON.stringify(name)}: ${flatText(item)}`).join(', ')} }`;
}
