// Encodes and decodes the ledger as text in a ConfigMap, with a format version and strict validation.
import * as z from 'zod';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { compareText } from '../../policies/values/compare-text.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { ordinalRanges, ordinalsIn } from '../amount.ts';
import type { RunState } from '../run/run-state.ts';
import { type Claim, emptyLedger, isUnknown, type Known, type Ledger, type Pin, type Preparation } from '../snapshot.ts';

export const ledgerKey = 'ledger';

/** The label that every ledger carries, and its value. */
export const ledgerLabel = { key: 'rollout-group.dev/document', value: 'ledger' } as const;

/** The label of ledgers with a release, by which the agent finds deleted groups. `otherwise`: the value after the release is cancelled. */
export const releaseLabel = { key: 'rollout-group.dev/on-policy-deleted', value: 'release', otherwise: 'hold' } as const;

export const ledgerByteLimit = 256 * 1024;

/** `major.minor`. A minor version adds only fields that an older writer may drop. An agent blocks a group with a newer major version. */
const format = { major: 1 } as const;

/** The format of a ledger with pins. An older agent, which would drop the pins with its first write, blocks the group instead. */
const pinnedFormat = { major: 2 } as const;

/**
 * The minor version of a ledger, in either major version. An older agent may drop a release, created pods and members: then released
 * StatefulSets keep their state, and no member that leaves is reported. If it drops the ended cancellations, they block downscales again.
 */
function minorOf({ release, created, members, endedCancels }: Ledger): number {
  if (endedCancels !== undefined) return 3;
  if (created !== undefined || members !== undefined) return 2;
  return release === undefined ? 0 : 1;
}

interface LedgerIdentity {
  readonly namespace: string;
  readonly group: string;
}

export function ledgerName(group: string): string {
  return `rollout-group-${group}`;
}

/** Name of a zone in a ledger. Zones found by labels are named after their StatefulSets. */
const zone = z
  .string()
  .max(253)
  .regex(/^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/);

/** Ordinals as ascending ranges, such as `0-4,7`. */
const ranges = z.string().regex(/^\d{1,10}(?:-\d{1,10})?(?:,\d{1,10}(?:-\d{1,10})?)*$/);

const text = z.string().min(1);
const settledRow = z.object({ zone, revision: text, ordinals: ranges });

const placedRow = z.object({
  zone,
  revision: text,
  ordinal: z.int().min(0),
  placements: z.int().min(1),
  replaces: z.string().optional(),
  atMs: z.int().optional(),
});

const pinRow = z.union([placedRow, settledRow]);

const templateRow = z.object({ zone, revision: text, template: z.record(z.string(), z.unknown()) });

const member = z.object({ zone, statefulSet: z.string().min(1) });

const releaseRow = z.object({
  source: z.enum(['directory', 'objects']),
  zones: z.array(member).min(1),
  goneMs: z.int().optional(),
  released: z.array(zone).optional(),
});

const instant = z.int();
const instants = z.union([instant, z.array(instant)]);
const count = z.int().min(0);
const uids = z.array(z.string());

const claim = { zone, atMs: instant, epoch: count.optional(), user: z.string().optional() };

const podClaims = z.object({
  verb: z.enum(['deletePod', 'evictPod']),
  ...claim,
  ordinals: ranges.optional(),
  /** One UID per ordinal, in the same order. */
  uids: uids.min(1),
  resourceVersions: z.array(z.string()).optional(),
});

const setClaim = z.object({
  verb: z.enum(['scaleDown', 'setPartition']),
  ...claim,
  uid: z.string(),
  resourceVersion: z.string().optional(),
  from: count.optional(),
  to: count.optional(),
});

const preparations = z.object({
  zone,
  call: z.enum(['delayed', 'prepare']),
  state: z.enum(['asked', 'prepared', 'failed']),
  /** One time for all pods, or one time per ordinal: pods answer at different times. */
  seenMs: instants,
  reportedMs: instants.optional(),
  answeredMs: instants.optional(),
  sinceMs: instants.optional(),
  message: z.string().optional(),
  isWithdrawn: z.literal(true).optional(),
  ordinals: ranges,
  uids: uids.min(1),
});

const revisions = z.record(zone, z.string());
const origin = z
  .object({
    cause: z.string().optional(),
    commit: z.string().optional(),
    planDigest: z.string().optional(),
    isUndo: z.literal(true).optional(),
  })
  .transform((one) => defined(one));
const run = z.object({
  id: text,
  kind: z.enum(['rollout', 'rollback']),
  target: revisions,
  previous: revisions,
  kept: z.record(zone, z.array(text)).optional(),
  from: revisions.optional(),
  base: revisions.optional(),
  earlier: revisions.optional(),
  joined: z.object({ id: text, startedMs: instant }).optional(),
  origin: origin.optional(),
  seen: z.array(z.string()).optional(),
  startedMs: instant,
  wave: count,
  waveStartedMs: instant,
  waveAvailableMs: instant.optional(),
  waves: z.string().max(64).optional(),
  openZone: zone.optional(),
  lastDisruptionMs: instant.optional(),
  inFlightSinceMs: instant.optional(),
  movableMs: z.number().min(0),
  movableAsOfMs: instant,
  isMovable: z.boolean(),
  outcome: z.enum(['running', 'completed', 'failed']),
  failure: z.string().optional(),
  failedMs: instant.optional(),
  onFailure: z.enum(['pause', 'rollback']).optional(),
  awaitsPods: z.literal(true).optional(),
  retriedMs: instant.optional(),
  answered: z.array(text).optional(),
  completedMs: instant.optional(),
  returning: z.array(zone).optional(),
  interrupted: origin.optional(),
  restores: revisions.optional(),
  completed: revisions.optional(),
  rolledBack: z.object({ revisions, because: z.string() }).optional(),
});

const document = z.object({
  namespace: text,
  group: text,
  epoch: count.optional(),
  claims: z.array(z.union([podClaims, setClaim])),
  downscales: z.array(z.object({ zone, atMs: instant, from: count, to: count })),
  preparations: z.array(preparations),
  created: z.array(z.object({ zone, uid: z.string(), ordinals: z.union([ranges, z.literal('')]) })).optional(),
  run: run.optional(),
  pins: z.array(pinRow).optional(),
  templates: z.array(templateRow).optional(),
  release: releaseRow.optional(),
  members: z.array(member).optional(),
  endedCancels: z.array(text).optional(),
});

type LedgerDocument = z.infer<typeof document>;

/** Returns the text of a ledger. The order of the lists does not change the text. Unknown if the text is too long or cannot be decoded. */
export function encodeLedger(ledger: Ledger): Known<string> {
  const { namespace, group, epoch, claims, downscales, preparations: prepared, run: state, pins = [], templates = [] } = ledger;
  const { major } = pins.length === 0 ? format : pinnedFormat;
  const encoded = canonicalJson({
    format: `${major}.${minorOf(ledger)}`,
    namespace,
    group,
    epoch,
    claims: sorted([...encodePodClaims(claims), ...claims.filter(isOfSet)]),
    downscales: sorted(downscales),
    preparations: sorted(encodePreparations(prepared)),
    ...(ledger.created === undefined ? {} : { created: sorted(ledger.created) }),
    run: state,
    ...(pins.length === 0 ? {} : { pins: sorted(encodePins(pins)) }),
    ...(templates.length === 0 ? {} : { templates: sorted(templates) }),
    release: ledger.release,
    members: ledger.members,
    endedCancels: ledger.endedCancels,
  });
  const read = decodeLedger(encoded, ledger);
  return isUnknown(read) ? read : encoded;
}

/**
 * Returns the ledger of a text; the empty ledger without a text. Unknown if the text has no known major format, belongs to another group,
 * exceeds `ledgerByteLimit`, does not match the schema, or is inconsistent.
 */
export function decodeLedger(given: string | undefined, identity: LedgerIdentity): Known<Ledger> {
  if (given === undefined) return emptyLedger(identity.namespace, identity.group);
  const refuse = (why: string): Known<Ledger> => ({ unknown: `the ledger of ${identity.namespace}/${identity.group} ${why}` });
  // The number of characters is a lower limit of the number of bytes and costs nothing.
  if (given.length > ledgerByteLimit || new TextEncoder().encode(given).length > ledgerByteLimit) {
    return refuse(`is longer than ${ledgerByteLimit} bytes`);
  }
  const value = parsed(given);
  if (value === undefined) return refuse('is not JSON, or contains the key __proto__');
  const problem = formatProblem(value);
  if (problem !== undefined) return refuse(problem);
  const read = document.safeParse(value);
  if (!read.success) return refuse(`cannot be read: ${issueText(read.error)}`);
  if (read.data.namespace !== identity.namespace || read.data.group !== identity.group) {
    return refuse(`belongs to ${read.data.namespace}/${read.data.group}`);
  }
  return decoded(read.data) ?? refuse('has lists of different lengths, ordinals that do not ascend, or two pins of one pod');
}

/** Returns the parsed JSON; undefined if the text is no JSON, or has the key `__proto__`, which has a meaning in JavaScript. */
function parsed(given: string): unknown {
  let isHostile = false;
  try {
    // A check of every key is expensive. Only a text with this name, or with escapes that may spell the name, needs the check.
    if (!/__proto__|\\u/.test(given)) return JSON.parse(given);
    const value: unknown = JSON.parse(given, (key, member: unknown) => {
      if (key === '__proto__') isHostile = true;
      return member;
    });
    return isHostile ? undefined : value;
  } catch {
    return undefined;
  }
}

const versioned = z.object({ format: z.string() });

function formatProblem(value: unknown): string | undefined {
  const read = versioned.safeParse(value);
  const version = read.success ? /^(\d{1,6})\.(\d{1,6})$/.exec(read.data.format) : null;
  if (version === null) return 'names no format version';
  const major = Number(version[1]);
  if (major === format.major || major === pinnedFormat.major) return undefined;
  return `has the format ${version[0]}, which ${major > pinnedFormat.major ? 'only a newer version reads' : 'is no longer read'}; this version reads ${format.major} and ${pinnedFormat.major}`;
}

function issueText(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue === undefined ? 'unknown shape' : `${issue.path.map(String).join('.') || 'the document'}: ${issue.message}`.slice(0, 300);
}

interface Numbered<Row> {
  readonly row: Row;
  /** The common fields of the rows of one batch. */
  readonly key: string;
  readonly ordinal: number;
  readonly uid: string;
}

/** Groups rows into batches with the same key and ascending ordinals. The order of the rows does not matter. */
function batches<Row>(rows: readonly Numbered<Row>[]): readonly (readonly [Row, ...Row[]])[] {
  return [...groupBy(rows, ({ key }) => key).values()].flatMap(ascending);
}

function ascending<Row>(rows: readonly Numbered<Row>[]): readonly (readonly [Row, ...Row[]])[] {
  const open: { last: number; readonly rows: [Row, ...Row[]] }[] = [];
  const inOrder = [...rows].sort(
    (a, b) => a.ordinal - b.ordinal || compareText(a.uid, b.uid) || compareText(canonicalJson(a.row), canonicalJson(b.row)),
  );
  for (const { row, ordinal } of inOrder) {
    // Two successive pods of one ordinal are in two batches.
    const batch = open.find(({ last }) => last < ordinal);
    if (batch === undefined) open.push({ last: ordinal, rows: [row] });
    else {
      batch.rows.push(row);
      batch.last = ordinal;
    }
  }
  return open.map((batch) => batch.rows);
}

function isOfSet<Row extends { readonly verb: Claim['verb'] }>(
  claim: Row,
): claim is Extract<Row, { readonly verb: 'scaleDown' | 'setPartition' }> {
  return claim.verb === 'scaleDown' || claim.verb === 'setPartition';
}

function encodePodClaims(claims: readonly Claim[]): readonly object[] {
  const numbered = claims
    .filter((claim) => !isOfSet(claim))
    .map((row) => {
      const { verb, zone: of, atMs, epoch, user, ordinal, uid, resourceVersion } = row;
      const key = JSON.stringify([verb, of, atMs, epoch, ordinal !== undefined, resourceVersion !== undefined, user]);
      return { row, key, ordinal: ordinal ?? -1, uid };
    });
  return batches(numbered).map((rows) => {
    const [{ verb, zone: of, atMs, epoch, user }] = rows;
    const ordinals = rows.flatMap(({ ordinal }) => ordinal ?? []);
    const versions = rows.flatMap(({ resourceVersion }) => resourceVersion ?? []);
    return {
      verb,
      zone: of,
      atMs,
      epoch,
      user,
      uids: rows.map(({ uid }) => uid),
      ...(ordinals.length === 0 ? {} : { ordinals: ordinalRanges(ordinals) }),
      ...(versions.length === 0 ? {} : { resourceVersions: versions }),
    };
  });
}

function encodePreparations(entries: readonly Preparation[]): readonly object[] {
  const numbered = entries.map((row) => {
    const { zone: of, call, state, message, isWithdrawn, reportedMs, answeredMs, sinceMs, ordinal, podUid } = row;
    // The parts before the zone contain no slash, so two rows have the same key only if all their parts are equal.
    const instantsOf = `${reportedMs !== undefined}/${answeredMs !== undefined}/${sinceMs !== undefined}`;
    const common = `${call}/${state}/${isWithdrawn}/${instantsOf}/${message === undefined}/`;
    return { row, key: `${common}${message === undefined ? of : JSON.stringify([of, message])}`, ordinal, uid: podUid };
  });
  return batches(numbered).map((rows) => {
    const [{ zone: of, call, state, message, isWithdrawn }] = rows;
    return {
      zone: of,
      call,
      state,
      message,
      isWithdrawn,
      seenMs: oneForAll(rows.map(({ seenMs }) => seenMs)),
      reportedMs: oneForAll(rows.flatMap(({ reportedMs }) => reportedMs ?? [])),
      answeredMs: oneForAll(rows.flatMap(({ answeredMs }) => answeredMs ?? [])),
      sinceMs: oneForAll(rows.flatMap(({ sinceMs }) => sinceMs ?? [])),
      ordinals: ordinalRanges(rows.map(({ ordinal }) => ordinal)),
      uids: rows.map(({ podUid }) => podUid),
    };
  });
}

function oneForAll(values: readonly number[]): number | readonly number[] | undefined {
  return values.every((value) => value === values[0]) ? values[0] : values;
}

function decoded(read: LedgerDocument): Ledger | undefined {
  const { claims, preparations: prepared, downscales, created, run: state, pins = [], templates = [], release, ...plain } = read;
  const pinned = pinsOf(pins);
  const opened = claims.map((claim) => (isOfSet(claim) ? [defined(claim)] : podClaimsOf(claim)));
  const known = prepared.map(preparationsOf);
  if (opened.some((list) => list === undefined) || known.some((list) => list === undefined) || pinned === undefined) return undefined;
  return {
    ...defined(plain),
    claims: sorted(opened.flatMap((list) => list ?? [])),
    downscales: downscales.map((downscale) => downscale),
    preparations: sorted(known.flatMap((list) => list ?? [])),
    ...(created === undefined ? {} : { created: sorted(created) }),
    ...(state === undefined ? {} : { run: runOf(state) }),
    ...(pinned.length === 0 ? {} : { pins: sorted(pinned) }),
    ...(templates.length === 0 ? {} : { templates: sorted(templates) }),
    ...(release === undefined ? {} : { release: defined(release) }),
  };
}

/** Returns the state of a stored run. The ledger stores every field flat; a field that the state does not have is ignored. */
function runOf({
  outcome,
  failure,
  failedMs,
  onFailure,
  completedMs,
  openZone,
  waveAvailableMs,
  ...stored
}: z.infer<typeof run>): RunState {
  if (outcome === 'completed') return defined({ ...stored, outcome, completedMs: completedMs ?? stored.startedMs });
  const inWave = { ...stored, openZone, waveAvailableMs };
  if (outcome === 'running') return defined({ ...inWave, outcome });
  return defined({ ...inWave, outcome, failure: failure ?? 'the run failed', failedMs: failedMs ?? 0, onFailure });
}

function podClaimsOf({ ordinals, uids: named, resourceVersions, ...common }: z.infer<typeof podClaims>): readonly Claim[] | undefined {
  const numbers = ordinals === undefined ? [] : ordinalsIn(ordinals, named.length);
  if (numbers === undefined || (ordinals !== undefined && numbers.length !== named.length)) return undefined;
  if (resourceVersions !== undefined && resourceVersions.length !== named.length) return undefined;
  return named.map((uid, index) => defined({ ...common, uid, ordinal: numbers[index], resourceVersion: resourceVersions?.[index] }));
}

function preparationsOf(batch: z.infer<typeof preparations>): readonly Preparation[] | undefined {
  const { ordinals, uids: named, seenMs, reportedMs, answeredMs, sinceMs, zone: of, call, state, message, isWithdrawn } = batch;
  const numbers = ordinalsIn(ordinals, named.length);
  const seen = forEach(seenMs, named.length);
  const reported = reportedMs === undefined ? [] : forEach(reportedMs, named.length);
  const answered = answeredMs === undefined ? [] : forEach(answeredMs, named.length);
  const since = sinceMs === undefined ? [] : forEach(sinceMs, named.length);
  if (numbers?.length !== named.length || seen === undefined) return undefined;
  if (reported === undefined || answered === undefined || since === undefined) return undefined;
  // There are thousands of rows, so each row is built without a second pass that removes absent members.
  return named.map((podUid, index): Preparation => {
    const row: Mutable<Preparation> = { zone: of, ordinal: numbers[index] ?? 0, podUid, call, state, seenMs: seen[index] ?? 0 };
    const [reportedAtMs, answeredAtMs, knownSinceMs] = [reported[index], answered[index], since[index]];
    if (reportedAtMs !== undefined) row.reportedMs = reportedAtMs;
    if (answeredAtMs !== undefined) row.answeredMs = answeredAtMs;
    if (knownSinceMs !== undefined) row.sinceMs = knownSinceMs;
    if (message !== undefined) row.message = message;
    if (isWithdrawn !== undefined) row.isWithdrawn = isWithdrawn;
    return row;
  });
}

/** Returns one value per row; undefined if the number of values differs from `count`. */
function forEach(values: number | readonly number[], count: number): readonly number[] | undefined {
  if (typeof values === 'number') return Array.from({ length: count }, () => values);
  return values.length === count ? values : undefined;
}

type Mutable<Row> = { -readonly [Key in keyof Row]: Row[Key] };

type Placed = { readonly zone?: string; readonly ordinal?: number | undefined };

function sorted<Row extends Placed>(rows: readonly Row[]): Row[] {
  const texts = new Map<Row, string>();
  const textOf = (row: Row): string => {
    const known = texts.get(row) ?? canonicalJson(row);
    texts.set(row, known);
    return known;
  };
  return [...rows].sort(
    (a, b) => compareText(a.zone ?? '', b.zone ?? '') || (a.ordinal ?? -1) - (b.ordinal ?? -1) || compareText(textOf(a), textOf(b)),
  );
}

/** The maximum number of pods in one row of pins. A document with a longer row is rejected before a list is built. */
const maxOrdinals = 100_000;

function encodePins(pins: readonly Pin[]): readonly z.infer<typeof pinRow>[] {
  const settled = new Map<string, { readonly zone: string; readonly revision: string; readonly ordinals: number[] }>();
  const placed: z.infer<typeof placedRow>[] = [];
  for (const { zone: of, revision: at, ordinal, placements, replaces, atMs } of pins) {
    if (placements > 0) {
      placed.push({
        zone: of,
        revision: at,
        ordinal,
        placements,
        ...defined({ replaces, atMs }),
      });
      continue;
    }
    const key = `${of} ${at}`;
    const row = settled.get(key) ?? { zone: of, revision: at, ordinals: [] };
    row.ordinals.push(ordinal);
    settled.set(key, row);
  }
  return [...placed, ...[...settled.values()].map((row) => ({ ...row, ordinals: ordinalRanges(row.ordinals) }))];
}

/** Returns the pins of rows; undefined if two rows name the same pod or ordinals do not ascend. */
function pinsOf(rows: readonly z.infer<typeof pinRow>[]): readonly Pin[] | undefined {
  const seen = new Set<string>();
  const pins: Pin[] = [];
  for (const row of rows) {
    const ordinals = 'ordinals' in row ? ordinalsIn(row.ordinals, maxOrdinals) : [row.ordinal];
    if (ordinals === undefined) return undefined;
    for (const ordinal of ordinals) {
      const key = `${row.zone} ${ordinal}`;
      if (seen.has(key)) return undefined;
      seen.add(key);
      pins.push(pinOf(row, ordinal));
    }
  }
  return pins;
}

function pinOf(row: z.infer<typeof pinRow>, ordinal: number): Pin {
  const common = { zone: row.zone, ordinal, revision: row.revision };
  if (!('placements' in row)) return { ...common, placements: 0 };
  const { placements, replaces, atMs } = row;
  return { ...common, placements, ...defined({ replaces, atMs }) };
}
