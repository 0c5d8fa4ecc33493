// Reads assumptions from a file: durations as seconds or as text such as 90s, checked field by field.
import { parseDocument } from 'yaml';
import { type Assumptions, defaultAssumptions, type PodTimes, type Quantiles } from '../../engine/plan/document.ts';
import { durationMs } from '../../policies/duration.ts';
import { exitCodes, Failure } from '../failure.ts';
import type { InputFile } from './input.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Collects the problems of fields, each as a sentence that begins with the path. */
class Problems {
  readonly found: string[] = [];

  add(path: string, sentence: string): undefined {
    this.found.push(`${path === '' ? 'the document' : path} ${sentence}`);
    return undefined;
  }
}

/**
 * Reads assumptions from YAML or JSON. Missing fields keep their default. `p90` equals `p50` if only that is given.
 *
 * @throws Failure with exit code 4 that names every invalid field.
 */
export function readAssumptions(file: InputFile): Assumptions {
  const document = parseDocument(file.text, { uniqueKeys: true });
  const [syntaxError] = document.errors;
  const problems = new Problems();
  // Aliases have no use here, and can expand a small file to a huge one.
  const value =
    syntaxError === undefined ? toPlain(document, problems) : problems.add('', `is not valid YAML: ${firstLine(syntaxError.message)}`);
  const assumptions = readFields(value ?? {}, problems);
  if (problems.found.length === 0) return assumptions;
  throw new Failure({
    exitCode: exitCodes.findings,
    what: `${file.name} holds no valid assumptions`,
    why: problems.found.join('; '),
    todo: 'kubectl rollout-group docs plan',
  });
}

function toPlain(document: ReturnType<typeof parseDocument>, problems: Problems): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    return problems.add('', 'uses aliases, which are not supported');
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.replace(/:$/, '') ?? '';
}

const choices = {
  gates: ['pass', 'fail'],
  approvals: ['given', 'missing'],
  preparations: ['succeed', 'fail'],
} as const;

function readFields(value: unknown, problems: Problems): Assumptions {
  const fields = readMap(value, '', ['pods', 'groups', 'gates', 'approvals', 'preparations', 'metrics'], problems);
  const groups = readMap(fields['groups'], 'groups', undefined, problems);
  const metrics = readMap(fields['metrics'], 'metrics', undefined, problems);
  const entries = Object.entries(metrics).flatMap(([name, number]) =>
    typeof number === 'number' ? [[name, number] as const] : (problems.add(`metrics.${name}`, 'is not a number') ?? []),
  );
  return {
    pods: { ...defaultAssumptions.pods, ...readPodTimes(fields['pods'], 'pods', problems) },
    groups: Object.fromEntries(Object.entries(groups).map(([name, times]) => [name, readPodTimes(times, `groups.${name}`, problems)])),
    gates: readChoice(fields, 'gates', problems),
    approvals: readChoice(fields, 'approvals', problems),
    preparations: readChoice(fields, 'preparations', problems),
    metrics: { ...defaultAssumptions.metrics, ...Object.fromEntries(entries) },
  };
}

function readChoice<Key extends keyof typeof choices>(fields: Fields, key: Key, problems: Problems): (typeof choices)[Key][number] {
  const allowed: readonly (typeof choices)[Key][number][] = choices[key];
  const found = allowed.find((choice) => choice === (fields[key] ?? defaultAssumptions[key]));
  if (found === undefined) problems.add(key, `is not ${allowed.join(' or ')}`);
  return found ?? defaultAssumptions[key];
}

function readPodTimes(value: unknown, path: string, problems: Problems): Partial<PodTimes> {
  const fields = readMap(value, path, ['drain', 'start'], problems);
  const drain = readQuantiles(fields['drain'], `${path}.drain`, problems);
  const start = readQuantiles(fields['start'], `${path}.start`, problems);
  return { ...(drain === undefined ? {} : { drain }), ...(start === undefined ? {} : { start }) };
}

/** Reads `{ p50: 90s, p90: 3m }`, also as `p50Seconds` as plans print it; or one duration for both. */
function readQuantiles(value: unknown, path: string, problems: Problems): Quantiles | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object') {
    const both = readSeconds(value, path, problems);
    return both === undefined ? undefined : { p50Seconds: both, p90Seconds: both };
  }
  const fields = readMap(value, path, ['p50', 'p90', 'p50Seconds', 'p90Seconds'], problems);
  const p50Seconds = readSeconds(fields['p50Seconds'] ?? fields['p50'], `${path}.p50`, problems);
  const p90Seconds = readSeconds(fields['p90Seconds'] ?? fields['p90'] ?? p50Seconds, `${path}.p90`, problems);
  if (p50Seconds === undefined || p90Seconds === undefined) return undefined;
  if (p90Seconds < p50Seconds) return problems.add(path, `has a p90 of ${p90Seconds} s below its p50 of ${p50Seconds} s`);
  return { p50Seconds, p90Seconds };
}

const longestSeconds = 30 * 86_400;

function readSeconds(value: unknown, path: string, problems: Problems): number | undefined {
  const seconds = typeof value === 'number' ? value : typeof value === 'string' ? secondsOf(value) : undefined;
  if (seconds === undefined) return problems.add(path, 'is neither a duration such as 90s nor a number of seconds');
  if (!(seconds >= 0 && seconds <= longestSeconds)) return problems.add(path, 'is not between 0 and 30 days');
  return seconds;
}

function secondsOf(text: string): number | undefined {
  try {
    return durationMs(text) / 1000;
  } catch {
    return undefined;
  }
}

function readMap(value: unknown, path: string, known: readonly string[] | undefined, problems: Problems): Fields {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) return problems.add(path, 'is not a mapping') ?? {};
  for (const key of Object.keys(value)) {
    if (known !== undefined && !known.includes(key))
      problems.add(path === '' ? key : `${path}.${key}`, `is unknown here; known are ${known.join(', ')}`);
  }
  return Object.fromEntries(Object.entries(value));
}
