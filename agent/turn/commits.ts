// Reads the commit of a starting run. The GitOps tool that applied the StatefulSets has this commit in its status.
import { getObject } from '../../cluster/request/read.ts';
import { contextOf } from '../../engine/context.ts';
import { appliedCommit, applierOf } from '../../engine/observe/applier.ts';
import { needsCommit } from '../../engine/run/origin.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';

const appliers = {
  Application: { group: 'argoproj.io', version: 'v1alpha1', plural: 'applications', kind: 'Application', isNamespaced: true },
  Kustomization: {
    group: 'kustomize.toolkit.fluxcd.io',
    version: 'v1',
    plural: 'kustomizations',
    kind: 'Kustomization',
    isNamespaced: true,
  },
} as const;

/** The shortest time between two reads for one group. */
const intervalMs = 30_000;
/** A commit is not worth a longer wait of the turn. */
const longestTimeoutMs = 2_000;

interface CommitParts {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'commitsFrom' | 'kubernetesTimeoutMs'>;
}

/** Adds the commits to the StatefulSets of a group whose run needs one. Never rejects. */
export async function withCommits(
  { env, config: { commitsFrom, kubernetesTimeoutMs } }: CommitParts,
  group: GroupDefinition,
  memory: { commitsAskedMs?: number },
  { snapshot, run }: { readonly snapshot: Snapshot; readonly run: RunState | undefined },
): Promise<Snapshot> {
  const nowMs = env.clock.monotonicMs();
  if (commitsFrom === undefined || nowMs - (memory.commitsAskedMs ?? Number.NEGATIVE_INFINITY) < intervalMs) return snapshot;
  const { view } = contextOf(snapshot, group);
  if (!needsCommit(view, run, snapshot.nowMs)) return snapshot;
  memory.commitsAskedMs = nowMs;
  const options = { site: 'turn.commit', timeoutMs: Math.min(kubernetesTimeoutMs, longestTimeoutMs) };
  const commits = await Promise.all(
    view.zones.map(async ({ set }) => {
      const applier = set && applierOf(set, commitsFrom.argoCdNamespace);
      if (set === undefined || applier === undefined) return undefined;
      try {
        return appliedCommit(await getObject(env, appliers[applier.kind], applier, options), set);
      } catch (error) {
        env.log.warn('the commit of a rollout cannot be read', { group: group.name, ...applier, error: messageOf(error) });
        return undefined;
      }
    }),
  );
  const byUid = new Map(view.zones.map(({ set }, index) => [set?.uid, commits[index]]));
  return {
    ...snapshot,
    statefulSets: snapshot.statefulSets.map((set) => {
      const commit = byUid.get(set.uid);
      return commit === undefined ? set : { ...set, commit };
    }),
  };
}
