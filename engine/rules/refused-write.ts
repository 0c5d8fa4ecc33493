// Blocks the writes that the API server rejected until the agent repeats them. Only the rejected write waits, not the group.
import { counted } from '../../policies/wording.ts';
import type { GroupContext } from '../context.ts';
import type { Action, RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import type { RefusedWrite } from '../snapshot.ts';

type Write = Pick<RefusedWrite, 'kind' | 'namespace' | 'target' | 'to'>;

/** Returns what identifies the write of an action; undefined for calls to pods. */
export function writeOf(action: Action): Write | undefined {
  const { namespace } = action;
  switch (action.kind) {
    case 'deletePod':
    case 'evictPod':
      return { kind: action.kind, namespace, target: action.pod };
    case 'scaleStatefulSet':
    case 'setPartition':
      return { kind: action.kind, namespace, target: action.statefulSet, to: action.to };
    case 'advanceCurrentRevision':
      return { kind: action.kind, namespace, target: action.statefulSet };
    case 'writeBackReplicas':
      return { kind: action.kind, namespace, target: action.name, to: action.replicas };
    case 'callPods':
      return undefined;
    default:
      return action satisfies never;
  }
}

/** Returns the block of an action whose write the API server rejected; undefined if the write may be sent. */
export function refusalOf({ snapshot, nowMs }: Pick<GroupContext, 'snapshot' | 'nowMs'>, action: Action): RuleResult | undefined {
  const write = writeOf(action);
  const refused = snapshot.refusedWrites?.find(
    ({ kind, namespace, target, to }) =>
      kind === write?.kind && namespace === write.namespace && target === write.target && to === write.to,
  );
  if (refused === undefined) return undefined;
  const { message, untilMs } = refused;
  return result('write-accepted', 'wait', `${describeWrite(refused)} did not succeed: ${message}`, {
    earliestMs: untilMs > nowMs ? untilMs : undefined,
  });
}

function describeWrite({ kind, target, to }: Write): string {
  const texts: Readonly<Record<Write['kind'], string>> = {
    deletePod: `the deletion of ${target}`,
    evictPod: `the eviction of ${target}`,
    scaleStatefulSet: `the change of ${target} to ${counted(to ?? 0, 'replica')}`,
    setPartition: `the change of ${target} to partition ${to}`,
    advanceCurrentRevision: `the write of the current revision of ${target}`,
    writeBackReplicas: `the report of ${counted(to ?? 0, 'replica')} to ${target}`,
  };
  return texts[kind];
}
