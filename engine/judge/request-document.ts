// A judged request as text, so that it can be judged again later. The text does not name the requester.

import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { AdmissionRequest } from '../decision.ts';
import { reader } from '../observe/raw.ts';

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
