// Findings of adoption on labels and annotations: invalid or misleading values.
import type { AdoptedStatefulSet } from './statefulset.ts';

/** A problem of one label, annotation or field of one StatefulSet. Codes are explained in docs/findings.md. */
export interface AdoptionFinding {
  readonly code: string;
  /** One sentence: the value and its effect. */
  readonly message: string;
  /** `StatefulSet namespace/name`. */
  readonly object: string;
  /** The label, the annotation or the path of the field. */
  readonly field: string;
}

const adoptionCodes = {
  maxUnavailableInvalid: 'RG4001',
  leaderNotInGroup: 'RG4002',
  leaderAndMirror: 'RG4003',
  minTimeInvalid: 'RG4004',
  delayedDownscaleInvalid: 'RG4005',
  delayedUrlInvalid: 'RG4006',
  prepareIncomplete: 'RG4007',
  mirrorUnusable: 'RG4008',
  writeBackNotBoolean: 'RG4009',
  forceReplicasIgnored: 'RG4010',
  labelAsAnnotation: 'RG4011',
  strategyNotOnDelete: 'RG4012',
  podNameLabelMissing: 'RG4013',
  singleMember: 'RG4014',
  almostTrue: 'RG4015',
  userInformationDropped: 'RG4016',
  notText: 'RG4017',
  leadersFormCycle: 'RG4018',
  notAdoptable: 'RG4019',
  delayedDownscaleIgnored: 'RG4020',
  mirrorIgnored: 'RG4021',
} as const;

export type AdoptionProblem = keyof typeof adoptionCodes;

/** Returns the finding of one problem at one place. */
export function adoptionFinding(set: AdoptedStatefulSet, problem: AdoptionProblem, field: string, message: string): AdoptionFinding {
  return { code: adoptionCodes[problem], message, object: objectText(set), field };
}

/** Returns the name of a StatefulSet for messages and sources. */
export function objectText(set: Pick<AdoptedStatefulSet, 'namespace' | 'name'>): string {
  return `StatefulSet ${set.namespace}/${set.name}`;
}

/** Returns a value for messages: quoted, control characters escaped, at most 80 characters. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}
