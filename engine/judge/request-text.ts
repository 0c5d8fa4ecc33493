// A judged request as text: for people, for the id of its decision, and to judge it again later.
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
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

/** The longest encoded request in characters. */
const longestText = 8_192;

/** Returns the text; undefined if it would be too long. */
export function encodeRequest(request: AdmissionRequest): string | undefined {
  const { user: _user, dryRun: _dryRun, ...asked } = { user: '', ...request };
  const text = canonicalJson(asked);
  return text.length > longestText ? undefined : text;
}

/** Returns the request of a text, never as a dry run; undefined if the text is not a request. */
export function decodeRequest(text: string): AdmissionRequest | undefined {
  if (text.length > longestText) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const fields = reader(value);
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
    case 'update': {
      const strategy = oneOf(fields.text('strategy'), ['OnDelete', 'RollingUpdate'] as const);
      const partition = fields.whole('partition');
      const firstOrdinal = fields.whole('firstOrdinal');
      const betweenZones = fields.text('betweenZones');
      const relabels = fields.list('relabels').filter((label) => typeof label === 'string');
      if (via === undefined || via === 'scale' || strategy === undefined) return undefined;
      return {
        kind,
        ...common,
        statefulSet,
        from,
        to,
        strategy,
        via,
        isTemplateChanged: fields.flag('isTemplateChanged') ?? false,
        ...(partition === undefined ? {} : { partition }),
        ...(firstOrdinal === undefined ? {} : { firstOrdinal }),
        ...(fields.has('relabels') ? { relabels } : {}),
        ...(betweenZones === undefined ? {} : { betweenZones }),
      };
    }
    case 'deleteStatefulSet': {
      const pods = fields.whole('pods');
      return { kind, ...common, statefulSet, ...(pods === undefined ? {} : { pods }) };
    }
    case 'deletePod':
    case 'evictPod':
      return pod === '' ? undefined : { kind, ...common, pod };
    case 'restart':
      return { kind, ...common, statefulSet };
    default:
      return undefined;
  }
}

function oneOf<Text extends string>(text: string | undefined, texts: readonly Text[]): Text | undefined {
  return texts.find((one) => one === text);
}
