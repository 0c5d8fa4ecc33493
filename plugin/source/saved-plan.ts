// Writes and reads saved plans: the shown plan, its basis and its objects, with a digest that reveals changes.
import { hash } from 'node:crypto';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import type { GroupPlan, Plan } from '../../engine/plan/document.ts';
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import { listed } from '../../policies/wording.ts';
import { exitCodes, Failure, unwritable } from '../failure.ts';
import { version } from '../version.ts';
import type { ReadObject } from './cluster/plan-basis.ts';
import { unreadable } from './input.ts';
import type { GivenFiles } from './plan-inputs.ts';

/** A plan that `plan --out` saves and `apply` carries out. */
export interface SavedPlan {
  readonly apiVersion: 'rollout-group.dev/cli/v1';
  readonly kind: 'SavedPlan';
  readonly metadata: {
    /** The SHA-256 over scope, basis, objects and plan, in canonical JSON. */
    readonly digest: string;
    readonly createdAt: string;
    readonly tool: string;
  };
  readonly scope: PlanScope;
  readonly basis: readonly ReadObject[];
  readonly objects: readonly ObjectContent[];
  readonly plan: Plan;
}

interface PlanScope {
  /** The UID of the namespace kube-system, which identifies a cluster; absent if the user may not read it. */
  readonly cluster?: string;
  readonly server: string;
  /** Empty for all namespaces. */
  readonly namespaces: readonly string[];
  readonly agentNamespace?: string;
  /** `namespace/name`, sorted. */
  readonly groups: readonly string[];
  /** The contents of the files, so that apply needs no files. */
  readonly files: GivenFiles;
  /** The names of the objects of the files that are not applied, if any. */
  readonly omitted?: readonly string[];
  readonly forceConflicts?: boolean;
}

export function savedPlan(content: Pick<SavedPlan, 'scope' | 'basis' | 'objects' | 'plan'>, nowMs: number): SavedPlan {
  const metadata = { digest: digestOf(content), createdAt: new Date(nowMs).toISOString(), tool: version };
  return { apiVersion: 'rollout-group.dev/cli/v1', kind: 'SavedPlan', metadata, ...content };
}

function digestOf({ scope, basis, objects, plan }: Pick<SavedPlan, 'scope' | 'basis' | 'objects' | 'plan'>): string {
  return hash('sha256', canonicalJson({ scope, basis, objects, plan }));
}

/** The parts of a plan without times, in which a later plan of the same objects can differ: exceptions, stops and windows begin and end. */
const timelessParts: Readonly<Record<string, (group: GroupPlan) => unknown>> = {
  steps: ({ waves }) =>
    waves.map(({ name, steps }) => [
      name,
      steps.map(({ kind, zone, pods, from, to, waitsFor }) => ({ kind, zone, pods, from, to, waitsFor })),
    ]),
  denials: ({ refused }) => refused.map(({ what, zone }) => ({ what, zone })),
  waits: ({ waits }) => waits.map(({ rule, outcome }) => ({ rule, outcome })),
  stops: ({ stops = [] }) => stops.map(({ rule, zones, endsWith }) => ({ rule, zones, endsWith })),
  'permitting exceptions': ({ permitted = [] }) => permitted.map(({ rule, exception }) => ({ rule, exception })),
  risks: ({ risks }) => risks.map(({ code }) => code),
};

/** Returns a sentence for each group whose plan differs from the saved one in more than times, with the parts that differ. */
export function planDeviations({ groups: saved }: Pick<Plan, 'groups'>, { groups }: Pick<Plan, 'groups'>): readonly string[] {
  return groups.flatMap((group) => {
    const { namespace, group: name, outcome } = group;
    const before = saved.find((one) => one.namespace === namespace && one.group === name);
    if (before === undefined) return [`the saved plan does not have ${namespace}/${name}`];
    const parts = Object.entries(timelessParts).flatMap(([part, of]) => (isSameValue(of(before), of(group)) ? [] : [part]));
    const others = parts.length === 0 ? [] : [`it has other ${listed(parts, 'and')}`];
    const outcomes = outcome === before.outcome ? [] : [`the outcome was ${before.outcome} and is ${outcome}`];
    const changes = [...outcomes, ...others];
    return changes.length === 0 ? [] : [`the plan of ${namespace}/${name} differs from the saved one: ${changes.join('; ')}`];
  });
}

export function shortDigest(digest: string): string {
  return digest.slice(0, 16);
}

/** Writes a JSON file that only its owner can read. Throws Failure with exit code 11 if the file cannot be written. */
export function writePlanFile(content: object, path: string, cwd: string): void {
  try {
    writeFileSync(resolve(cwd, path), `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    // The mode applies only to a new file.
    chmodSync(resolve(cwd, path), 0o600);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Reads a saved plan. Throws Failure with exit code 10 without the file, 3 if the file is not a saved plan or was changed. */
export function readSavedPlan(path: string, cwd: string): SavedPlan {
  const value = tryParseJson(read(path, cwd));
  if (value === undefined || isManifest(value)) throw unusable(path, 'it is not a saved plan', asManifests(path));
  if (isRecord(value) && value['kind'] === 'Plan') {
    throw unusable(path, 'it was made from manifests, so the running state is unknown', 'make it from the cluster: plan --live --out FILE');
  }
  if (!isSavedPlan(value)) throw unusable(path, 'it is not a saved plan of this version', 'make it with plan --live --out FILE');
  if (value.metadata.digest !== digestOf(value)) {
    throw unusable(path, 'its content does not match its digest: it was changed or truncated', 'make it again');
  }
  return value;
}

function read(path: string, cwd: string): string {
  try {
    return readFileSync(resolve(cwd, path), 'utf8');
  } catch (cause) {
    const error = cause as NodeJS.ErrnoException;
    if (error.code === 'EISDIR') throw unusable(path, 'it is a directory', asManifests(path));
    const { details } = unreadable(path, error);
    throw new Failure({ ...details, todo: 'name the file that plan --out wrote, or manifests with -f' });
  }
}

/** Reports whether the value is a Kubernetes object, and no document of this tool. */
function isManifest(value: unknown): boolean {
  return isRecord(value) && typeof value['apiVersion'] === 'string' && !value['apiVersion'].startsWith('rollout-group.dev/cli/');
}

function asManifests(path: string): string {
  return `to apply manifests or policies, name them with -f: kubectl rollout-group apply -f ${path}; a saved plan is the file that plan --out wrote`;
}

/** Reports whether the value has the shape of a saved plan. The digest proves that nothing was changed. */
function isSavedPlan(value: unknown): value is SavedPlan {
  const parts = ['metadata', 'scope', 'basis', 'objects', 'plan'];
  return isRecord(value) && value['kind'] === 'SavedPlan' && parts.every((key) => key in value);
}

function unusable(path: string, why: string, todo: string): Failure {
  return new Failure({ exitCode: exitCodes.usage, what: `${path} cannot be applied`, why, todo });
}
