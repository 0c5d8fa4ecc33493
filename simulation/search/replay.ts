// Reads and writes scenarios as text: from failing seeds, and as stored plans.
import type { z } from 'zod';
import { messageOf } from '../../policies/error-message.ts';
import type { Scenario } from '../scenario.ts';
import { planSchema, scenarioSchema } from './schema.ts';

/** A scenario that once found a defect, and is played in every test run. */
export interface StoredPlan extends Scenario {
  /** In file-name form, such as `delete-after-takeover`. */
  readonly name: string;
  /** Its finding: an invariant such as `S7`, or the name of a planted defect. */
  readonly finds: string;
  /** One or two sentences: what happens, and what was wrong. */
  readonly why: string;
}

/** Thrown for an invalid scenario or plan: names the file and each invalid place. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

/** Reads a scenario, or a stored plan as one. Throws PlanError that names `source`. */
export function readScenario(text: string, source: string): Scenario {
  const value = parsed(text, source);
  const isPlan = typeof value === 'object' && value !== null && 'finds' in value;
  if (!isPlan) return ordered(checked(scenarioSchema, value, source), source);
  const { name: _, finds: __, why: ___, ...scenario } = readPlan(text, source);
  return scenario;
}

/** Reads a stored plan. Throws PlanError that names `source`. */
export function readPlan(text: string, source: string): StoredPlan {
  return ordered(checked(planSchema, parsed(text, source), source), source) as StoredPlan;
}

/** Returns the text of a scenario or plan with short values on one line, so that a change of one fault changes one line. */
export function writeScenario(scenario: Scenario | StoredPlan): string {
  return `${written(scenario, '', 0, true)}\n`;
}

function parsed(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PlanError(`${source} is not JSON: ${messageOf(error)}`);
  }
}

function checked(schema: z.ZodType, value: unknown, source: string): Scenario {
  const result = schema.safeParse(value);
  // The schema equals the type; the compiler cannot compare the two.
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

/** For example `events[3].zone`. */
function placeOf(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text === '' ? 'the whole' : text.replace(/^\./, '');
}

const lineWidth = 140;

/** Returns JSON with short values on one line. The first line already has `before` characters. */
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

/** A list of several objects has one line per object. */
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
