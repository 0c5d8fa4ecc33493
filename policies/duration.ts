// Parses durations in the notations of policy files, Go and Prometheus, and formats them.

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_536_000_000,
};

interface Notation {
  readonly whole: RegExp;
  readonly part: RegExp;
}

/** Returns the patterns of a notation, which are built once: policy tests read the same durations again and again. */
function notation(units: readonly string[], number: string): Notation {
  const pattern = `(${number})(${[...units].sort((a, b) => b.length - a.length).join('|')})`;
  return { whole: new RegExp(`^(?:${pattern})+$`), part: new RegExp(pattern, 'g') };
}

const decimal = String.raw`\d+(?:\.\d+)?`;
const ofPolicies = notation(['ms', 's', 'm', 'h', 'd', 'w'], decimal);
const ofGo = notation(['ns', 'us', 'µs', 'ms', 's', 'm', 'h'], String.raw`(?:\d+\.?\d*|\.\d+)`);
const ofPrometheus = notation(['y', 'w', 'd', 'h', 'm', 's', 'ms'], decimal);

/** Returns the milliseconds of a duration that the schema accepts (`12h`, `1h30m`, `7d`, `0`), or undefined. */
export function parseDuration(text: string): number | undefined {
  return sumOfUnits(text, ofPolicies);
}

/** Returns the milliseconds of a duration that the schema accepted. Throws RangeError for other text. */
export function durationMs(text: string): number {
  const value = parseDuration(text);
  if (value === undefined) throw new RangeError(`not a duration: ${text}`);
  return value;
}

/** Returns the milliseconds of a Go duration (`12h`, `1.5h`, `-5s`, `0`), or undefined. Go has no unit for days. */
export function goDurationMs(text: string): number | undefined {
  const sign = /^[+-]/.exec(text)?.[0];
  const value = sumOfUnits(sign ? text.slice(1) : text, ofGo);
  return value === undefined ? undefined : sign === '-' ? -value : value;
}

/** Returns the milliseconds of a Prometheus duration (`1d`, `1h30m`, `0`), or undefined. Each unit occurs at most once, largest first. */
export function prometheusDurationMs(text: string): number | undefined {
  const isOrdered = /^(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?$/.test(text);
  return isOrdered || text === '0' ? sumOfUnits(text, ofPrometheus) : undefined;
}

/**
 * Returns the text of a duration, the largest units first and without zero parts: `90m` becomes `1h30m`; 0 is `0s`. Fractions of a
 * millisecond are dropped.
 */
export function formatDuration(ms: number): string {
  let rest = Math.trunc(Math.abs(ms));
  if (rest === 0) return '0s';
  let text = ms < 0 ? '-' : '';
  for (const unit of ['d', 'h', 'm', 's', 'ms'] as const) {
    const size = unitMs[unit] ?? 1;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}

function sumOfUnits(text: string, { whole, part }: Notation): number | undefined {
  if (text === '0') return 0;
  if (!whole.test(text)) return undefined;
  let sum = 0;
  for (const [, count, unit] of text.matchAll(part)) sum += Number(count) * (unitMs[unit ?? ''] ?? 0);
  return sum;
}
