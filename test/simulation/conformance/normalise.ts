// What is left of a recording when everything is taken out in which two servers may differ.
//
// Left out: `managedFields`; the messages of refusals, which nobody reads but people; `remainingItemCount`, an estimate. Instants are `time`,
// but for those of 2000, which the sequences write themselves; UIDs are numbered by their first appearance; a resourceVersion is the number
// of versions of objects of this sequence up to it; a continue token is `more`. Nothing that the server fills in is left out.
import type { Outcome, Recording } from './operation.ts';

type Fields = Readonly<Record<string, unknown>>;

interface Names {
  readonly namespace: string;
  readonly uids: ReadonlyMap<string, string>;
  /** In rising order. */
  readonly versions: readonly bigint[];
}

const instant = /^(?!2000-)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** One comparable value for each operation. */
export function normalise({ namespace, outcomes }: Recording): readonly unknown[] {
  const names = { namespace, ...namesOf(outcomes) };
  return outcomes.map((outcome) => {
    const normal = (value: unknown): unknown => normalised(value, names);
    if (outcome.kind === 'stream') {
      return { stream: outcome.events.map(({ type, object }) => ({ type, object: normal(object) })), end: outcome.end };
    }
    const { status, retryAfter, body } = outcome;
    // A refusal that is no Status is a text for people.
    return { status, ...(retryAfter === undefined ? {} : { retryAfter }), body: typeof body === 'string' ? 'text' : normal(body) };
  });
}

function namesOf(outcomes: readonly Outcome[]): Omit<Names, 'namespace'> {
  const uids = new Map<string, string>();
  const versions = new Set<bigint>();
  const visit = (object: unknown): void => {
    if (!isFields(object) || !isFields(object['metadata'])) return;
    const { items, metadata } = object;
    if (Array.isArray(items)) {
      for (const item of items) visit(item);
      return;
    }
    const { uid, resourceVersion } = metadata as Fields;
    if (typeof uid === 'string' && !uids.has(uid)) uids.set(uid, `uid ${uids.size + 1}`);
    if (typeof resourceVersion === 'string' && /^\d+$/.test(resourceVersion)) versions.add(BigInt(resourceVersion));
  };
  for (const outcome of outcomes) {
    if (outcome.kind === 'answer') visit(outcome.body);
    else for (const { object } of outcome.events) visit(object);
  }
  return { uids, versions: [...versions].sort((a, b) => (a < b ? -1 : 1)) };
}

function normalised(value: unknown, names: Names): unknown {
  if (Array.isArray(value)) return value.map((item) => normalised(item, names));
  if (typeof value === 'string') return text(value, names);
  if (!isFields(value)) return value;
  if (value['kind'] === 'Status' && 'code' in value) return refusal(value, names);
  const fields: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) {
    const normal = key === 'metadata' && isFields(field) ? metadata(field, names) : normalised(field, names);
    if (normal !== undefined) fields[key] = normal;
  }
  return fields;
}

function text(value: string, { namespace, uids }: Names): string {
  if (value === namespace) return 'NAMESPACE';
  return instant.test(value) ? 'time' : (uids.get(value) ?? value);
}

function metadata(fields: Fields, names: Names): unknown {
  const normal: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    // Lists of custom kinds say it even when nothing follows.
    const isOver = key === 'continue' && value === '';
    if (key === 'managedFields' || key === 'remainingItemCount' || isOver) continue;
    if (key === 'resourceVersion') normal[key] = versionOf(value, names);
    else if (key === 'continue') normal[key] = 'more';
    else normal[key] = normalised(value, names);
  }
  return normal;
}

/** How many versions of objects there were up to it. */
function versionOf(value: unknown, { versions }: Names): unknown {
  if (typeof value !== 'string' || !/^\d+$/.test(value)) return value;
  const version = BigInt(value);
  return `version ${versions.filter((one) => one <= version).length}`;
}

function refusal({ status, reason, code, details }: Fields, names: Names): unknown {
  const { causes, name, group, kind, uid, retryAfterSeconds } = isFields(details) ? details : {};
  const found = Array.isArray(causes) ? causes.filter(isFields).map(({ reason: why, field }) => `${why ?? ''} ${field ?? ''}`) : [];
  // Their order is that of the checks, and some checks are made twice.
  const fields = { status, reason, code, name, group, kind, retryAfterSeconds, uid, causes: [...new Set(found)].sort() };
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (value === undefined ? [] : [[key, normalised(value, names)]])),
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
