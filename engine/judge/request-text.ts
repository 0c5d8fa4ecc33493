// Writes judged requests as text: for messages, for decision ids, and to judge a denied request again later.
import * as z from 'zod';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { AdmissionRequest } from '../decision.ts';
import { type Snapshot, setNamed } from '../snapshot.ts';
import { groupOf, podNamed } from './admission-claims.ts';

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
 * Returns twelve hexadecimal digits of a hash of group, leading rule, request, object UID and policies. The requester, a dry run and the time
 * of a restart do not change the hash.
 */
export function decisionId(snapshot: Snapshot, request: AdmissionRequest, rule: string | undefined): string {
  const object = withoutRequester(request);
  const { group, uid } = subjectOf(snapshot, request);
  return hashText(canonicalJson({ rule: rule ?? 'allow', object, policies: snapshot.policyDigest, group, uid })).slice(0, 12);
}

function withoutRequester(request: AdmissionRequest): object {
  const all = { user: '', groups: [], restartedAtMs: 0, ...request };
  const { dryRun: _dryRun, user: _user, groups: _groups, restartedAtMs: _restartedAtMs, ...object } = all;
  return object;
}

function subjectOf(snapshot: Snapshot, request: AdmissionRequest): { readonly group: string; readonly uid: string } {
  const { namespace } = request;
  const isPod = request.kind === 'evictPod' || request.kind === 'deletePod';
  const pod = isPod ? podNamed(snapshot, namespace, request.pod) : undefined;
  const set = isPod ? pod?.set : setNamed(snapshot, namespace, request.statefulSet);
  const group = set === undefined ? undefined : groupOf(snapshot, namespace, set.name);
  return { group: group?.name ?? '', uid: (isPod ? pod?.pod.uid : set?.uid) ?? '' };
}

const longestText = 8_192;

/** Returns the request as JSON text; undefined if the text would be too long. */
export function encodeRequest(request: AdmissionRequest): string | undefined {
  const text = canonicalJson(withoutRequester(request));
  return text.length > longestText ? undefined : text;
}

const set = { namespace: z.string().min(1), statefulSet: z.string().min(1) };
const pod = { namespace: z.string().min(1), pod: z.string().min(1) };
const replicas = z.int().optional();

const requestShape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('scale'), ...set, from: replicas, to: replicas, via: z.enum(['update', 'patch', 'apply', 'scale']) }),
  z.object({
    kind: z.literal('update'),
    ...set,
    from: replicas,
    to: replicas,
    via: z.enum(['update', 'patch', 'apply']),
    strategy: z.enum(['OnDelete', 'RollingUpdate']),
    isTemplateChanged: z.boolean().default(false),
    partition: z.int().exactOptional(),
    firstOrdinal: z.int().exactOptional(),
    relabels: z.array(z.string()).exactOptional(),
    betweenZones: z.string().exactOptional(),
  }),
  z.object({ kind: z.literal('deleteStatefulSet'), ...set, pods: z.int().exactOptional() }),
  z.object({ kind: z.enum(['deletePod', 'evictPod']), ...pod }),
  z.object({ kind: z.literal('restart'), ...set }),
]);

/** Returns the request of a text, never as a dry run; undefined if the text is not a request. */
export function decodeRequest(text: string): AdmissionRequest | undefined {
  if (text.length > longestText) return undefined;
  const read = requestShape.safeParse(tryParseJson(text));
  if (!read.success) return undefined;
  const request = { ...read.data, dryRun: false };
  return 'via' in request ? { from: undefined, to: undefined, ...request } : request;
}
