// Checks the cluster for doctor: installed kinds, clocks and the version of Kubernetes.
import { isUnknown } from '../../engine/snapshot.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import { spanText } from '../output/plan/plan-text.ts';
import { type Check, check, isMember, type Outcome, orOk, result, skipped } from './check.ts';

export const installedKinds: Check = check('CRDs', ['kinds'], ({ kinds }) => {
  const results = kinds.flatMap(({ kind, isServed, isOurs }): readonly Outcome[] => {
    if (!isServed) return [result('warn', `${kind} is not installed`, 'RG6005')];
    if (isUnknown(isOurs)) return skipped(`${kind}: ${isOurs.unknown}`);
    if (isOurs) return [];
    const update = `kubectl rollout-group schema ${kind} -o crd | kubectl apply -f -`;
    return [result('warn', `${kind} is installed in another version. Run: ${update}`, 'RG6006')];
  });
  return orOk(results, `${counted(kinds.length, 'kind')} installed in this version`);
});

/** The tolerated clock skew. With a larger skew, the shown ages and end times mislead. */
const skewMs = 5_000;
/** The clock skew above which the check fails, because the agent ignores times that are further in the future. */
const maxFutureMs = 30_000;

export const clocks: Check = check('clock', ['serverMs'], ({ nowMs, serverMs, clockDoubtMs }) => {
  const apartMs = Math.max(0, Math.abs(nowMs - serverMs) - clockDoubtMs);
  const message = `this machine is ${spanText(apartMs / 1000)} ${nowMs > serverMs ? 'ahead of' : 'behind'} the API server`;
  if (apartMs > maxFutureMs) return [result('FAIL', message, 'RG6018')];
  if (apartMs > skewMs) return [result('warn', message, 'RG6018')];
  return [result('ok', 'this machine and the API server agree')];
});

/** A version of Kubernetes 1 as one number. */
const versionOf = (minor: number, patch: number): number => minor * 1_000 + patch;

/** The versions with a behavior that affects groups, from the first version to the version before the second. */
const ranges = {
  /** `spec.ordinals.start` needs a feature gate, which is on by default since 1.27. */
  ignoredOrdinals: [0, versionOf(27, 0)],
  /** The feature gate MaxUnavailableStatefulSet is on by default. 1.35.4 turned it off because of kubernetes/kubernetes#137409. */
  defaultGate: [versionOf(35, 0), versionOf(35, 4)],
  /** With the feature gate on, unready pods at an outdated revision use up `maxUnavailable`. 1.37 has the fix of the same issue. */
  blockedFix: [0, versionOf(37, 0)],
} as const;

export const kubernetesVersion: Check = check(
  'Kubernetes',
  ['groups', 'serverVersion'],
  ({ serverVersion, maxUnavailableGate: gate, sets, groups }) => {
    const [, minor, patch] = /^v?1\.(\d+)\.(\d+)/.exec(serverVersion) ?? [];
    if (minor === undefined) return skipped(`the version ${serverVersion} is not valid`);
    const version = versionOf(Number(minor), Number(patch));
    const isIn = ([first, end]: readonly [number, number]): boolean => version >= first && version < end;
    const membersOf = (wanted: typeof groups) => sets.filter((set) => wanted.some((group) => isMember(group, set)));
    const names = (list: typeof sets): string => list.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
    // Under the other strategies the StatefulSet controller replaces no pod. With OrderedReady it waits for unready pods in every version.
    const rolled = membersOf(groups.filter((group) => traitsOf(group).lowersPartition));
    const rolling = rolled.filter(
      ({ updateStrategy, podManagementPolicy }) => updateStrategy === 'RollingUpdate' && podManagementPolicy === 'Parallel',
    );
    const ordinals = membersOf(groups).filter(({ firstOrdinal }) => firstOrdinal > 0);
    const results: Outcome[] = [];
    if (isIn(ranges.blockedFix) && (isUnknown(gate) ? isIn(ranges.defaultGate) : gate) && rolling.length > 0) {
      const cause = `the feature gate MaxUnavailableStatefulSet is on${isUnknown(gate) ? ' by default' : ''}`;
      const message = `${serverVersion} counts unready pods against maxUnavailable, because ${cause}: a broken revision of ${names(rolling)} may block its own fix`;
      results.push(result('warn', message, 'RG6017'));
    }
    if (isIn(ranges.ignoredOrdinals) && ordinals.length > 0) {
      const message = `${serverVersion} ignores spec.ordinals.start of ${names(ordinals)} unless a feature gate is set`;
      results.push(result('warn', message, 'RG6017'));
    }
    return orOk(results, `${serverVersion} has no known problem for these groups`);
  },
);
