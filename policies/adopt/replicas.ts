// The source of replicas of an adopted StatefulSet: a leader, a mirrored object, or direct scaling.

import { adoptionFinding, shown } from './findings.ts';
import { annotationKeys } from './keys.ts';
import { type Hold, holds, off, type Reading, reads } from './reading.ts';
import type { AdoptedStatefulSet } from './statefulset.ts';
import { goBoolean } from './values.ts';

/** A mirrored object as a policy file says it. */
export interface MirrorInput {
  readonly from: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly read: 'scale' };
  readonly writeBack: 'none' | 'status';
  readonly onMissing: 'hold';
}

/** The source of replicas. Without leader and mirror, users or an autoscaler write them. */
export interface ReplicasReading {
  /** Name of the StatefulSet that is followed. */
  readonly leader?: string;
  readonly mirror?: MirrorInput;
  /** True if the original writes the replicas, so that forced replicas take effect. */
  readonly isWritten: boolean;
  readonly hold?: Hold;
  readonly findings: Reading<never>['findings'];
}

/**
 * Reads leader and mirror. With both, the original flips between the two numbers; here the leader wins, because a follower that ignores
 * its leader could shrink before it. A StatefulSet that names itself follows no zone.
 */
export function readReplicas(set: AdoptedStatefulSet, groupMembers: ReadonlySet<string>): ReplicasReading {
  const leaderText = set.annotations[annotationKeys.leader];
  const mirror = readMirror(set);
  if (leaderText === undefined || leaderText === set.name) {
    const isWritten = leaderText !== undefined || mirror.value !== undefined;
    return {
      isWritten,
      findings: mirror.findings,
      ...(mirror.value && { mirror: mirror.value }),
      ...(mirror.hold && { hold: mirror.hold }),
    };
  }
  const isMirrorNamed = mirror.value !== undefined || mirror.hold !== undefined;
  const message = `${annotationKeys.mirrorName} is ignored because ${annotationKeys.leader} names a leader; the leader decides`;
  const conflict = isMirrorNamed ? [adoptionFinding(set, 'leaderAndMirror', annotationKeys.mirrorName, message)] : [];
  if (groupMembers.has(leaderText)) return { leader: leaderText, isWritten: true, findings: conflict };
  const text = `${annotationKeys.leader} is ${shown(leaderText)}, which names no StatefulSet of the group`;
  const stranger = holds(set, 'leaderNotInGroup', { field: annotationKeys.leader, text });
  return { isWritten: false, findings: [...stranger.findings, ...conflict], ...(stranger.hold && { hold: stranger.hold }) };
}

/** Mirroring is off while name or kind is empty. Whether the kind exists only the cluster can say. */
function readMirror(set: AdoptedStatefulSet): Reading<MirrorInput> {
  const { mirrorName, mirrorKind, mirrorApiVersion } = annotationKeys;
  const name = set.annotations[mirrorName] ?? '';
  const kind = set.annotations[mirrorKind] ?? '';
  if (name === '' && kind === '') return off;
  if (name === '' || kind === '') {
    const [present, missing] = name === '' ? [mirrorKind, mirrorName] : [mirrorName, mirrorKind];
    const message = `${present} is ignored because ${missing} is missing; no replicas are mirrored`;
    return { findings: [adoptionFinding(set, 'mirrorIgnored', present, message)] };
  }
  const apiVersion = set.annotations[mirrorApiVersion] ?? '';
  const problem = referenceProblem({ name, kind, apiVersion });
  if (problem !== undefined) return holds(set, 'mirrorUnusable', problem);
  const writeBack = readWriteBack(set);
  const from = { apiVersion: apiVersion === '/' ? '' : apiVersion, kind, name, read: 'scale' } as const;
  return reads({ from, writeBack: writeBack.value ? 'status' : 'none', onMissing: 'hold' }, writeBack.findings);
}

/** Returns the annotation that cannot be part of a reference, and why; undefined if the reference is valid. */
function referenceProblem({ name, kind, apiVersion }: Record<'name' | 'kind' | 'apiVersion', string>): Hold | undefined {
  const { mirrorName, mirrorKind, mirrorApiVersion } = annotationKeys;
  const problem = (field: string, text: string): Hold => ({ field, text: `${field} is ${text}` });
  if (apiVersion !== '/' && apiVersion.split('/').length > 2)
    return problem(mirrorApiVersion, `${shown(apiVersion)}, which is not a group/version`);
  if (apiVersion.length > 253) return problem(mirrorApiVersion, 'longer than 253 characters');
  if (kind.length > 63) return problem(mirrorKind, `${shown(kind)}, which is not a kind`);
  return name.length > 253 ? problem(mirrorName, 'longer than 253 characters') : undefined;
}

/** On unless the annotation says otherwise; what is no boolean counts as false. */
function readWriteBack(set: AdoptedStatefulSet): Reading<boolean> {
  const field = annotationKeys.mirrorWriteBack;
  const text = set.annotations[field];
  if (text === undefined) return reads(true);
  const value = goBoolean(text);
  if (value !== undefined) return reads(value);
  return reads(false, [
    adoptionFinding(set, 'writeBackNotBoolean', field, `${field} is ${shown(text)}, which is no boolean; false is used`),
  ]);
}
