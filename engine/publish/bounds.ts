// Shortens a published decision that is too long, the least important parts first.
import { shorten as shortenText } from '../../policies/text/shorten.ts';
import type { RuleResult } from '../decision.ts';
import { blocks } from '../rule.ts';
import { type PublishedDecision, publishedByteLimit } from './published.ts';

/** The maximum length of one text in characters, because messages of servers and policies have no limit. */
const textLimit = 400;

/** The reductions in their order. Each makes the value shorter and returns the number of omitted parts. */
const reductions: readonly ((value: PublishedDecision) => {
  readonly value: PublishedDecision;
  readonly omitted: number;
  readonly part: string;
})[] = [
  (value) => keepResults(value, blocks),
  (value) => keepResults(value, () => false),
  (value) => shorten(value, 'actions', 10),
  (value) => shorten(value, 'pods', 10),
  (value) => shorten(value, 'warnings', 5),
  (value) => ({
    value: {
      ...value,
      zones: value.zones.map(({ drift, ...zone }) => (drift === undefined ? zone : { ...zone, drift: { ...drift, fields: [] } })),
    },
    omitted: value.zones.reduce((sum, { drift }) => sum + (drift?.fields.length ?? 0), 0),
    part: 'fields of drift',
  }),
  (value) => shorten(value, 'gates', 10),
  (value) => shorten(value, 'waits', 10),
  (value) => ({
    value: { ...value, zones: value.zones.map((zone) => ({ ...zone, revisions: [] })) },
    omitted: value.zones.length,
    part: 'revisions',
  }),
  (value) => shorten(value, 'steps', 10),
  (value) => {
    const part = 'revisions of the run';
    if (value.run === undefined) return { value, omitted: 0, part };
    const { restores: _restores, kept: _kept, ...run } = value.run;
    return { value: { ...value, run: { ...run, target: {}, previous: {} } }, omitted: 1, part };
  },
  (value) => shorten(value, 'actions', 0),
  (value) => shorten(value, 'pods', 0),
  (value) => shorten(value, 'gates', 0),
  (value) => shorten(value, 'warnings', 0),
  (value) => shorten(value, 'waits', 3),
  (value) => shorten(value, 'steps', 0),
  (value) => shorten(value, 'zones', 20),
  (value) => shorten(value, 'stops', 3),
  (value) => shorten(value, 'left', 3),
  (value) => shorten(value, 'unusedExceptions', 3),
  ({ metrics = [], ...value }) => ({ value, omitted: metrics.length, part: 'metrics' }),
];

/**
 * Returns the decision in at most `publishedByteLimit` bytes: cuts long texts, then makes the `reductions` in their order until the
 * decision fits.
 */
export function bounded(decision: PublishedDecision): PublishedDecision {
  let value = cutTexts(decision);
  for (const reduce of reductions) {
    if (fits(value)) return value;
    const reduced = reduce(value);
    const others = value.omitted.filter((text) => !text.startsWith(`${reduced.part}: `));
    const before = value.omitted.find((text) => text.startsWith(`${reduced.part}: `));
    const omitted = reduced.omitted + Number(before?.slice(reduced.part.length + 2) ?? 0);
    value = { ...reduced.value, omitted: omitted === 0 ? others : [...others, `${reduced.part}: ${omitted}`] };
  }
  return value;
}

/** Reports whether the value fits. A UTF-16 code unit has at most three bytes, so the bytes of a short text are not counted. */
function fits(value: PublishedDecision): boolean {
  return JSON.stringify(value).length * 3 <= publishedByteLimit || bytesOf(value) <= publishedByteLimit;
}

/** Returns the size of the value as JSON, in UTF-8 bytes. */
export function bytesOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

function keepResults(value: PublishedDecision, isKept: (result: RuleResult) => boolean) {
  let omitted = 0;
  const steps = value.steps.map(({ results, ...step }) => {
    const kept = results?.filter(isKept) ?? [];
    omitted += (results?.length ?? 0) - kept.length;
    return kept.length === 0 ? step : { ...step, results: kept };
  });
  return { value: { ...value, steps }, omitted, part: 'rule results' };
}

type Part = 'actions' | 'pods' | 'warnings' | 'gates' | 'waits' | 'steps' | 'zones' | 'stops' | 'left' | 'unusedExceptions';

function shorten(value: PublishedDecision, part: Part, most: number) {
  const list = value[part] ?? [];
  return { value: { ...value, [part]: list.slice(0, most) }, omitted: Math.max(0, list.length - most), part };
}

/** Cuts the middle of every text longer than `textLimit`, because a text may end with a command. Ranges of ordinals are data and stay. */
function cutTexts<Value>(value: Value, key = ''): Value {
  if (typeof value === 'string') return (key === 'ordinals' ? value : shortenText(value, textLimit, '…')) as Value;
  // Most values have no long text. Copies of them would be a large part of the time.
  if (typeof value !== 'object' || value === null || !hasLongText(value)) return value;
  if (Array.isArray(value)) return value.map((member: unknown) => cutTexts(member)) as Value;
  return Object.fromEntries(Object.entries(value).map(([name, member]: [string, unknown]) => [name, cutTexts(member, name)])) as Value;
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > textLimit;
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLongText);
}
