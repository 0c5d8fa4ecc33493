// Metric inputs of RolloutPolicies: how often one is asked for, and whether any rule reads it.
import type { PolicyDefinition } from '../definition.ts';

const longestMs = 60_000;
const usualMs = 15_000;
const shortestMs = 1_000;

/**
 * Returns the read interval of an input with this `maxAge`, both in milliseconds: four reads per age, so that one may fail, and at least
 * one per minute. An interval below 15 s is used only if half of the age is shorter.
 */
export function inputEveryMs(maxAgeMs: number): number {
  return Math.max(shortestMs, Math.min(longestMs, Math.max(maxAgeMs / 4, Math.min(usualMs, maxAgeMs / 2))));
}

/**
 * Names of the inputs that a rule of the policy may read, in its condition or in what it says. By the text alone: one that is named without being
 * read is asked for in vain, and never the other way round.
 */
export function inputsRead({ metrics, rules }: Pick<PolicyDefinition, 'metrics' | 'rules'>): readonly string[] {
  const texts = rules.map(({ when, message }) => JSON.stringify([when ?? null, message ?? ''])).filter((text) => text.includes('inputs'));
  return Object.keys(metrics)
    .filter((name) => texts.some((text) => text.includes(name)))
    .sort();
}
