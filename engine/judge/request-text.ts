// Writes judged requests as text: for messages, for decision ids, and to judge a denied request again later.
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { AdmissionRequest } from '../decision.ts';
import { reader } from '../observe/raw.ts';
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

/** Returns twelve hexadecimal digits of a hash of group, leading rule, request, object UID and policies. Requester and dry run do not change it. */
export function decisionId(snapshot: Snapshot, request: AdmissionRequest, rule: string | undefined): string {
  const object = withoutRequester(request);
  const { group, uid } = subjectOf(snapshot, request);
  return hashText(canonicalJson({ rule: rule ?? 'allow', object, policies: snapshot.policyDigest, group, uid })).slice(0, 12);
}

function withoutRequester(request: AdmissionRequest): object {
  const { dryRun: _dryRun, user: _user, groups: _groups, ...object } = { user: '', groups: [], ...request };
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

/** Returns the request of a text, never as a dry run; undefined if the text is not a request. */
export function decodeRequest(text: string): AdmissionRequest | undefined {
  if (text.length > longestText) return undefined;
  const fields = reader(tryParseJson(text));
  const request = requestOf(fields);
  return fields.problem() === undefined ? request : undefined;
}

function requestOf(fields: ReturnType<typeof reader>): AdmissionRequest | undefined {
  const kind = fields.text('kind');
  const namespace = fields.text('namespace') ?? '';
  const common = { namespace, dryRun: false };
  const statefulSet = fields.text('statefulSet') ?? '';
  const pod = fields.text('pod') ?? '';
  const [from, to] = [fields.whole('from'), fields.whole('to')];
  const via = oneOf(fields.text('via'), ['update', 'patch', 'apply', 'scale'] as const);
  if (namespace === '' || (statefulSet === '' && pod === '')) return undefined;
  switch (kind) {
    case 'scale':
      return via === undefined ? undefined : { kind, ...common, statefulSet, from, to, via };
    case 'update':
      return via === undefined || via === 'scale' ? undefined : updateOf(fields, { ...common, statefulSet, from, to, via });
    case 'deleteStatefulSet':
      return { kind, ...common, statefulSet, ...defined({ pods: fields.whole('pods') }) };
    case 'deletePod':
    case 'evictPod':
      return pod === '' ? undefined : { kind, ...common, pod };
    case 'restart':
      return { kind, ...common, statefulSet };
    default:
      return undefined;
  }
}

type UpdateRequest = Extract<AdmissionRequest, { readonly kind: 'update' }>;

function updateOf(
  fields: ReturnType<typeof reader>,
  common: Pick<UpdateRequest, 'namespace' | 'dryRun' | 'statefulSet' | 'from' | 'to' | 'via'>,
): UpdateRequest | undefined {
  const strategy = oneOf(fields.text('strategy'), ['OnDelete', 'RollingUpdate'] as const);
  if (strategy === undefined) return undefined;
  const optional = {
    partition: fields.whole('partition'),
    firstOrdinal: fields.whole('firstOrdinal'),
    relabels: fields.has('relabels') ? fields.list('relabels').filter((label) => typeof label === 'string') : undefined,
    betweenZones: fields.text('betweenZones'),
  };
  return { kind: 'update', ...common, strategy, isTemplateChanged: fields.flag('isTemplateChanged') ?? false, ...defined(optional) };
}

function oneOf<Text extends string>(text: string | undefined, texts: readonly Text[]): Text | undefined {
  return texts.find((one) => one === text);
}
