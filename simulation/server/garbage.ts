// Models the garbage collector of Kubernetes: it deletes the objects that a deleted object owned, or removes the owner from them.
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import { remove } from './deletion.ts';
import { resourceOf, type ServedKind } from './kinds.ts';
import { Refusal } from './refusal.ts';
import type { Actor, Commit, ModelObject } from './request.ts';
import { type Core, keep, type Target } from './write.ts';

const actor: Actor = { user: 'system:serviceaccount:kube-system:generic-garbage-collector' };
/** The range of the delay of a reaction, in milliseconds. */
const delayMs = { from: 20, to: 500 };

interface GarbageOptions {
  readonly core: Core;
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  readonly kinds: readonly ServedKind[];
  readonly seed: number;
}

interface Owned {
  readonly kind: ServedKind;
  readonly object: ModelObject;
}

/** Starts the garbage collector, which follows the storage from now on. */
export function collectGarbage(options: GarbageOptions): void {
  const { core, scheduler, seed } = options;
  const kinds = new Map(options.kinds.map((kind) => [resourceOf(kind), kind]));
  const existing = new Set<string>();
  const soon = (revision: number, act: () => void): void => {
    scheduler.after(delayMs.from + (delayMs.to - delayMs.from) * draw(seed, `garbage ${revision}`), act);
  };
  core.storage.onCommit((commit) => {
    const { metadata } = commit.after;
    const kind = kinds.get(commit.resource);
    if (kind === undefined) return;
    if (commit.type === 'ADDED') existing.add(metadata.uid);
    if (commit.type === 'DELETED') {
      existing.delete(metadata.uid);
      soon(commit.revision, () => orphaned(options, metadata.uid, existing));
      return;
    }
    if (hasNewlyGone(commit)) soon(commit.revision, () => finalize(options, kind, commit.after));
    // The new object has a missing owner, for example an owner that was deleted at the same time.
    else if (commit.type === 'ADDED' && ownersOf(commit.after).some(({ uid }) => !existing.has(uid))) {
      soon(commit.revision, () => collect(options, { kind, object: commit.after }, existing));
    }
  });
}

function hasNewlyGone({ before, after }: Commit): boolean {
  const finalizers = after.metadata.finalizers ?? [];
  const isFinal = after.metadata.deletionTimestamp !== undefined && finalizers.includes('orphan');
  return isFinal && (before?.metadata.finalizers ?? []).join() !== finalizers.join();
}

function ownersOf({ metadata }: ModelObject) {
  return metadata.ownerReferences ?? [];
}

function ownedBy({ core, kinds }: GarbageOptions, uid: string): readonly Owned[] {
  return kinds.flatMap((kind) =>
    core.storage
      .collection(resourceOf(kind))
      .list()
      .filter((object) => ownersOf(object).some((owner) => owner.uid === uid))
      .map((object) => ({ kind, object })),
  );
}

function orphaned(options: GarbageOptions, uid: string, existing: ReadonlySet<string>): void {
  for (const owned of ownedBy(options, uid)) collect(options, owned, existing);
}

/** Deletes the object if all of its owners are missing. Otherwise removes its references to missing owners. */
function collect(options: GarbageOptions, { kind, object }: Owned, existing: ReadonlySet<string>): void {
  const { core } = options;
  const current = core.storage.collection(resourceOf(kind)).get(object.metadata.namespace ?? '', object.metadata.name);
  if (current === undefined || current.metadata.uid !== object.metadata.uid || ownersOf(current).length === 0) return;
  const left = ownersOf(current).filter(({ uid }) => existing.has(uid));
  if (left.length === ownersOf(current).length) return;
  if (left.length > 0) {
    writeMetadata(core, kind, current, { ...current.metadata, ownerReferences: left });
  } else if (current.metadata.deletionTimestamp === undefined) {
    attempt(() =>
      remove(core, targetOf(kind, current), { propagationPolicy: 'Background', uid: current.metadata.uid, isDryRun: false }, { actor }),
    );
  }
}

/** Orphans the owned objects, and then removes the finalizer. */
function finalize(options: GarbageOptions, kind: ServedKind, owner: ModelObject): void {
  const { core } = options;
  const current = core.storage.collection(resourceOf(kind)).get(owner.metadata.namespace ?? '', owner.metadata.name);
  if (current === undefined || current.metadata.uid !== owner.metadata.uid) return;
  const { finalizers = [], ...metadata } = current.metadata;
  if (!finalizers.includes('orphan')) return;
  for (const one of ownedBy(options, current.metadata.uid)) release(core, one, current.metadata.uid);
  const left = finalizers.filter((one) => one !== 'orphan');
  writeMetadata(core, kind, current, { ...metadata, ...(left.length > 0 && { finalizers: left }) });
}

function release(core: Core, { kind, object }: Owned, uid: string): void {
  const { ownerReferences = [], ...metadata } = object.metadata;
  const left = ownerReferences.filter((owner) => owner.uid !== uid);
  writeMetadata(core, kind, object, { ...metadata, ...(left.length > 0 && { ownerReferences: left }) });
}

function writeMetadata(core: Core, kind: ServedKind, before: ModelObject, metadata: ModelObject['metadata']): void {
  keep(core, kind, { before, after: { ...before, metadata } }, { actor, isDryRun: false });
}

function targetOf(kind: ServedKind, { metadata }: ModelObject): Target {
  return { kind, namespace: metadata.namespace ?? '', name: metadata.name };
}

/** Ignores a Refusal: another writer was faster, and a real collector would find no work when it retries. */
function attempt(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}
