// The endpoints that leaving pods are asked at: of the immediate preparation, and of the delayed downscale.

import { formatDuration, prometheusDurationMs } from '../duration.ts';
import { type AdoptionFinding, adoptionFinding, shown } from './findings.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import { holds, off, type Reading, reads } from './reading.ts';
import type { AdoptedStatefulSet } from './statefulset.ts';
import { type UrlParts, urlParts } from './url.ts';
import { readFlag, withinGoDuration } from './values.ts';

/** An endpoint as a policy file says it. */
interface EndpointInput {
  readonly scheme: 'http' | 'https';
  readonly port: number;
  readonly path: string;
}

const longestPath = 1024;

/** Label grafana.com/prepare-downscale with its port and path. The original denies every downscale while one of them is missing. */
export function readPrepare(set: AdoptedStatefulSet): Reading<{ readonly endpoint: EndpointInput }> {
  const flag = readFlag(set, 'labels', labelKeys.prepareDownscale);
  if (!flag.value) return { findings: flag.findings };
  const { preparePort, preparePath } = annotationKeys;
  const portText = set.annotations[preparePort] ?? '';
  const pathText = set.annotations[preparePath] ?? '';
  const refuse = (field: string, text: string) => holds(set, 'prepareIncomplete', { field, text, only: 'down' });
  if (portText === '') return refuse(preparePort, `${preparePort} is missing, so no pod can be asked to prepare`);
  if (pathText === '') return refuse(preparePath, `${preparePath} is missing, so no pod can be asked to prepare`);
  if (set.serviceName === '') return refuse('spec.serviceName', 'spec.serviceName is missing, so no pod has a name to be asked at');
  const port = portNumber(portText);
  if (port === undefined) return refuse(preparePort, `${preparePort} is ${shown(portText)}, which is not a port`);
  // The original puts a slash before the annotation, so one with a slash would be asked for as `//path`; one is enough.
  const parts = urlParts(`http://pod:${port}/${pathText.replace(/^\//, '')}`);
  const path = parts && endpointPath(parts);
  if (path === undefined) return refuse(preparePath, `${preparePath} is ${shown(pathText)}, which is not a URL path`);
  return reads({ endpoint: { scheme: 'http', port, path } });
}

/**
 * Annotations grafana.com/rollout-delayed-downscale and grafana.com/rollout-prepare-delayed-downscale-url. Off while one is empty or the
 * delay is 0. A value that cannot be read stops all scaling; a URL that no pod can be asked at stops shrinking.
 */
export function readDelayed(set: AdoptedStatefulSet): Reading<{ readonly after: string; readonly endpoint: EndpointInput }> {
  const { delay, delayedUrl } = annotationKeys;
  const delayText = set.annotations[delay] ?? '';
  const urlText = set.annotations[delayedUrl] ?? '';
  if (delayText === '' && urlText === '') return off;
  if (delayText === '' || urlText === '') {
    const [present, missing] = delayText === '' ? [delayedUrl, delay] : [delay, delayedUrl];
    const message = `${present} is ignored because ${missing} is missing; pods leave without delay`;
    return { findings: [adoptionFinding(set, 'delayedDownscaleIgnored', present, message)] };
  }
  const ms = withinGoDuration(delayText, prometheusDurationMs);
  if (ms === undefined) {
    const text = `${delay} is ${shown(delayText)}, which is no Prometheus duration such as 12h or 1d`;
    return holds(set, 'delayedDownscaleInvalid', { field: delay, text });
  }
  const parts = urlParts(urlText);
  if (!parts) return holds(set, 'delayedUrlInvalid', { field: delayedUrl, text: `${delayedUrl} is ${shownUrl(urlText)}, which is no URL` });
  if (ms === 0) return off;
  if (set.serviceName === '') {
    const text = 'spec.serviceName is missing, so no pod has a name to be asked at';
    return holds(set, 'delayedDownscaleInvalid', { field: 'spec.serviceName', text });
  }
  const endpoint = delayedEndpoint(parts);
  if (typeof endpoint === 'string') {
    const text = `${delayedUrl} is ${shownUrl(urlText)}, ${endpoint}`;
    return holds(set, 'delayedUrlInvalid', { field: delayedUrl, text, only: 'down' });
  }
  return reads({ after: formatDuration(ms), endpoint }, userInformationFindings(set, parts));
}

/** The endpoint, or why no pod can be asked at it. */
function delayedEndpoint(parts: UrlParts): EndpointInput | string {
  const { scheme } = parts;
  if (scheme !== 'http' && scheme !== 'https') return 'which is neither http nor https';
  if (!parts.hasHost) return 'which names no host to be replaced by the pod';
  const port = parts.port === '' ? (scheme === 'https' ? 443 : 80) : portNumber(parts.port);
  if (port === undefined) return 'whose port is out of range';
  const path = endpointPath(parts);
  return path === undefined ? `whose path is longer than ${longestPath} characters` : { scheme, port, path };
}

/** Returns path and query as sent: with a leading slash, and with percent-encoding where the schema needs it. */
function endpointPath({ pathAndQuery }: UrlParts): string | undefined {
  const rooted = pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
  const path = rooted.replace(/[\s@\\]/gu, (character) => (character === '@' ? '%40' : encodeURIComponent(character)));
  return path.length <= longestPath ? path : undefined;
}

function portNumber(text: string): number | undefined {
  const port = /^0*(\d{1,5})$/.exec(text)?.[1];
  return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535 ? Number(port) : undefined;
}

/** The original would send it with every call; passwords do not belong into annotations, and policy files have no place for them. */
function userInformationFindings(set: AdoptedStatefulSet, { hasUserInformation }: UrlParts): readonly AdoptionFinding[] {
  const field = annotationKeys.delayedUrl;
  const message = `${field} names a user, which is left out; pods are asked without it`;
  return hasUserInformation ? [adoptionFinding(set, 'userInformationDropped', field, message)] : [];
}

/** A URL in a message: without user information, which may hold a password. */
function shownUrl(text: string): string {
  return shown(text.replace(/\/\/.*@/s, '//'));
}
