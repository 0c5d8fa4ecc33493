// A plan in a file: what was shown, what it was made from, and the objects that it asks for; closed by a digest.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import type { Plan } from '../../engine/plan/document.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { version } from '../version.ts';
import type { ReadObject } from './cluster/plan-basis.ts';
import { unreadable } from './failures.ts';
import type { GivenFiles } from './live-options.ts';

/** A plan that `plan --out` saves and `apply` carries out. */
export interface SavedPlan {
  readonly apiVersion: 'rollout-group.dev/cli/v1';
  readonly kind: 'SavedPlan';
  readonly metadata: {
    /** SHA-256 over everything else but this object, in canonical JSON. */
    readonly digest: string;
    readonly createdAt: string;
    readonly tool: string;
  };
  readonly scope: PlanScope;
  /** The objects that the decision read. */
  readonly basis: readonly ReadObject[];
  /** The objects to apply, in this order. */
  readonly objects: readonly ObjectContent[];
  readonly plan: Plan;
}

interface PlanScope {
  /** UID of the namespace kube-system, by which clusters are told apart; absent where it may not be read. */
  readonly cluster?: string;
  readonly server: string;
  /** Empty for all. */
  readonly namespaces: readonly string[];
  /** The assumed namespace of the agent. */
  readonly agentNamespace?: string;
  /** `namespace/name`, sorted. */
  readonly groups: readonly string[];
  /** The files that it was made from, as their texts, so that the same can be read again without them. */
  readonly files: GivenFiles;
}

/** A saved plan around its content. */
export function savedPlan(content: Pick<SavedPlan, 'scope' | 'basis' | 'objects' | 'plan'>, nowMs: number): SavedPlan {
  const metadata = { digest: digestOf(content), createdAt: new Date(nowMs).toISOString(), tool: version };
  return { apiVersion: 'rollout-group.dev/cli/v1', kind: 'SavedPlan', metadata, ...content };
}

function digestOf({ scope, basis, objects, plan }: Pick<SavedPlan, 'scope' | 'basis' | 'objects' | 'plan'>): string {
  return createHash('sha256').update(canonicalJson({ scope, basis, objects, plan })).digest('hex');
}

/** Returns the short digest of a plan for objects and messages. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 16);
}

/** Writes a document as JSON that only its owner can read. Exit code 11 when it cannot be written. */
export function writePlanFile(content: object, path: string, cwd: string): void {
  try {
    writeFileSync(resolve(cwd, path), `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Failure({ exitCode: exitCodes.notAllowed, what: `${path} cannot be written`, why });
  }
}

/**
 * Reads a saved plan.
 *
 * @throws Failure with exit code 10 when there is no such file, 3 when it is no saved plan or was changed.
 */
export function readSavedPlan(path: string, cwd: string): SavedPlan {
  const value = parsed(read(path, cwd), path);
  if (isPlanOfFiles(value)) {
    throw unusable(path, 'it was made from manifests, so that nobody knows what runs', 'make it from the cluster: plan --live --out FILE');
  }
  if (!isSavedPlan(value)) throw unusable(path, 'it is no saved plan of this version', 'make it with plan --live --out FILE');
  if (value.metadata.digest !== digestOf(value)) {
    throw unusable(path, 'its content does not match its digest: it was changed, or cut off', 'make it again');
  }
  return value;
}

function read(path: string, cwd: string): string {
  try {
    return readFileSync(resolve(cwd, path), 'utf8');
  } catch (error) {
    throw unreadable(path, error as NodeJS.ErrnoException);
  }
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable(path, 'it is no JSON', 'name the file that plan --out wrote');
  }
}

function isPlanOfFiles(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Plan';
}

/** The shape is enough: that nothing in it was changed is shown by the digest. */
function isSavedPlan(value: unknown): value is SavedPlan {
  if (typeof value !== 'object' || value === null) return false;
  const has = (key: string): boolean => key in value;
  return 'kind' in value && value.kind === 'SavedPlan' && ['metadata', 'scope', 'basis', 'objects', 'plan'].every(has);
}

function unusable(path: string, why: string, todo: string): Failure {
  return new Failure({ exitCode: exitCodes.usage, what: `${path} cannot be applied`, why, todo });
}
