// A judged request as text, and the id of its decision.

import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import type { AdmissionRequest } from '../decision.ts';
import type { Snapshot } from '../snapshot.ts';
import { groupOf, podNamed, setNamed } from './admission-claims.ts';

/** Returns the request as text such as `scale of statefulset/x from 3 to 2`, without the namespace. */
export function describe(request: AdmissionRequest): string {
  switch (request.kind) {
    case 'scale':
    case 'update':
      return request.from === request.to
        ? `update of statefulset/${request.statefulSet}`
        : `scale of statefulset/${request.statefulSet} from ${request.from ?? 'null'} to ${request.to ?? 'null'}`;
    case 'deleteStatefulSet':
      return `delete of statefulset/${request.statefulSet}`;
    case 'deletePod':
      return `delete of pod/${request.pod}`;
    case 'evictPod':
      return `eviction of pod/${request.pod}`;
    case 'restart':
      return `restart of statefulset/${request.statefulSet}`;
  }
}

/**
 * Returns twelve hexadecimal digits that follow from the group, the leading rule, the request, the UID of its object and the policies. The
 * requester and a dry run make no difference; a recreated object does.
 */
export function decisionId(snapshot: Snapshot, request: AdmissionRequest, rule: string | undefined): string {
  const { dryRun: _dryRun, user: _user, ...object } = { user: '', ...request };
  const { group, uid } = subjectOf(snapshot, request);
  return hashText(canonicalJson({ rule: rule ?? 'allow', object, policies: snapshot.policyDigest, group, uid })).slice(0, 12);
}

function subjectOf(snapshot: Snapshot, request: AdmissionRequest): { readonly group: string; readonly uid: string } {
  const { namespace } = request;
  const isPod = request.kind === 'evictPod' || request.kind === 'deletePod';
  const pod = isPod ? podNamed(snapshot, namespace, request.pod) : undefined;
  const set = isPod ? pod?.set : setNamed(snapshot, namespace, request.statefulSet);
  const group = set === undefined ? undefined : groupOf(snapshot, namespace, set.name);
  return { group: group?.name ?? '', uid: (isPod ? pod?.pod.uid : set?.uid) ?? '' };
}
