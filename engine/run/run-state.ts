// Defines the stored state of a rollout run. `states.ts` has the transitions.

/** The origin of a change: annotations that were written with it, the commit of a GitOps tool, or the undo. `origin.ts` limits the texts. */
export interface RunOrigin {
  readonly cause?: string;
  readonly commit?: string;
  readonly planDigest?: string;
  readonly isUndo?: true;
}

/** The part of a rollout run that every state has. */
export interface RunCore {
  readonly id: string;
  readonly kind: 'rollout' | 'rollback';
  /** Update revision per zone. */
  readonly target: Readonly<Record<string, string>>;
  /**
   * In a rollout: the revision per zone to which its rollback returns, from before this run and the unfinished runs that it superseded. In a
   * rollback: the revision that it replaces, if a run failed or was completed there. In a return from an unfinished run: the restored revision.
   * `changesZone`, `revisionsAfter`, `revisionsToReturn` and `revisionsOfUndo` read it for every kind of run.
   */
  readonly previous: Readonly<Record<string, string>>;
  /** The other revisions per zone that pods ran before this change. A return leaves these pods. Absent without such pods. */
  readonly kept?: Readonly<Record<string, readonly string[]>>;
  /** Update revision per zone before the first template of the change (`joined`), even if some pods never ran it; absent: `previous`. */
  readonly from?: Readonly<Record<string, string>>;
  /** Update revision per zone before the last template of the change; absent: `from`. */
  readonly base?: Readonly<Record<string, string>>;
  /** In zones that the change has not changed: the revision per zone from before their own last change. A template of it returns the zone. */
  readonly earlier?: Readonly<Record<string, string>>;
  /** The first run of the change: StatefulSets that are written one after another cause several runs. Absent: this run is the first. */
  readonly joined?: Pick<RunCore, 'id' | 'startedMs'>;
  /** The origin of the change; absent if unknown. The annotations of an earlier change do not count. */
  readonly origin?: RunOrigin;
  /** Digests of the annotations that were observed last. An annotation that is the same at a later change belongs to the earlier change. */
  readonly seen?: readonly string[];
  readonly startedMs: number;
  /** Index of the current wave; the number of waves if all waves are done. */
  readonly wave: number;
  /** Start of the current wave: the time at which the previous wave was done; in the first wave, the start of the run. */
  readonly waveStartedMs: number;
  /** Digest of the waves when the run last replaced a pod; absent for one wave without an approval before its first pod. */
  readonly waves?: string;
  /** Time of the last replacement of a pod, in this run or in an earlier run. */
  readonly lastDisruptionMs?: number;
  /** Start of the uninterrupted time with pods in flight; absent while no pod is in flight. */
  readonly inFlightSinceMs?: number;
  /** Milliseconds up to `movableAsOfMs` in which the run did not wait for a person or a window. */
  readonly movableMs: number;
  readonly movableAsOfMs: number;
  /** True if the run waited for neither a person nor a window at `movableAsOfMs`. */
  readonly isMovable: boolean;
  /** Time of the last retry after a failure. */
  readonly retriedMs?: number;
  /** Digests of the retries and aborts that have had their effect. Absent in ledgers of earlier versions, which compare times. */
  readonly answered?: readonly string[];
  /** In a rollback of some zones: these zones. The rollout of the other zones starts over when they have returned. Absent: all zones return. */
  readonly returning?: readonly string[];
  /** In a rollback of some zones: the origin of the rollout that the other zones continue; absent if unknown. */
  readonly interrupted?: RunOrigin;
  /** In a rollback: the revision per zone before the rolled-back run, also of zones that left the group since. */
  readonly restores?: Readonly<Record<string, string>>;
  /** In a rollback and in runs that supersede it: the revision per zone that the last completed run reached. Absent in older ledgers. */
  readonly completed?: Readonly<Record<string, string>>;
  /** In a run that restores pods while the StatefulSets still have the failed template: the failed revision per zone, and the failure. */
  readonly rolledBack?: { readonly revisions: Readonly<Record<string, string>>; readonly because: string };
}

interface RunInWave extends RunCore {
  /** The zone whose pods are being replaced. */
  readonly openZone?: string;
  /** Time since which the wave has had no pod left to replace and every pod of the group has been available. */
  readonly waveAvailableMs?: number;
}

export interface RunningRun extends RunInWave {
  readonly outcome: 'running';
}

export interface FailedRun extends RunInWave {
  readonly outcome: 'failed';
  readonly failure: string;
  readonly failedMs: number;
  /** The choice of the requester who aborted the run; absent: the group's `onFailure` applies. */
  readonly onFailure?: 'pause' | 'rollback';
  /** True if the run failed because no pod became available. A return then continues as soon as the pods in flight are available. */
  readonly awaitsPods?: true;
}

export interface CompletedRun extends RunCore {
  readonly outcome: 'completed';
  readonly completedMs: number;
  readonly openZone?: undefined;
  readonly waveAvailableMs?: undefined;
}

export type UnfinishedRun = RunningRun | FailedRun;

/** A rollout of one group from one set of revisions to another. */
export type RunState = UnfinishedRun | CompletedRun;
