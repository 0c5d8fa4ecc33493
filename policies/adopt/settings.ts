// Reads the settings of one StatefulSet from its labels and annotations, as grafana/rollout-operator reads them.
import { formatDuration, goDurationMs, prometheusDurationMs } from '../duration.ts';
import type { EndpointSpec } from '../schema/rollout-group.ts';
import type { CountOrPercent } from '../schema/scalars.ts';
import { defined } from '../values/defined.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import {
  type AdoptedStatefulSet,
  type AdoptionFinding,
  adoptionFinding,
  blockScaling,
  off,
  type Reading,
  type ScalingBlock,
  settingOf,
  shown,
} from './statefulset.ts';
import { encodedPath, type UrlParts, urlParts } from './url.ts';

/** The largest Go duration (64 bits of nanoseconds), and the maximum length of a text that is parsed as a duration. */
const longestGoDuration = { ms: 9_223_372_036_854, characters: 64 };

/** The maximum of our schema. No StatefulSet has as many pods, so a larger number has the same effect. */
const unavailableLimit = 100_000;

/** Reads the annotation rollout-max-unavailable: a positive integer or `1%` to `100%`; any other value means 1. */
export function readMaxUnavailable(set: AdoptedStatefulSet): Reading<CountOrPercent> {
  const text = set.annotations[annotationKeys.maxUnavailable];
  if (text === undefined) return settingOf(1);
  const value = maxUnavailable(text);
  if (value !== undefined) return settingOf(value);
  const message = `${annotationKeys.maxUnavailable} is ${shown(text)}, neither a positive integer nor 1% to 100%; 1 is used`;
  return settingOf(1, [adoptionFinding(set, 'RG4001', annotationKeys.maxUnavailable, message)]);
}

function maxUnavailable(text: string): CountOrPercent | undefined {
  const trimmed = text.trim();
  if (trimmed.endsWith('%')) {
    const percent = goInteger(trimmed.slice(0, -1));
    return percent !== undefined && percent >= 1 && percent <= 100 ? `${percent}%` : undefined;
  }
  const count = goInteger(trimmed);
  return count !== undefined && count >= 1 ? Math.min(count, unavailableLimit) : undefined;
}

/** Reads the label grafana.com/min-time-between-zones-downscale, a Go duration. */
export function readBetweenZones(set: AdoptedStatefulSet): Reading<string> {
  const text = set.labels[labelKeys.minTimeBetweenZones];
  if (text === undefined) return off;
  const ms = withinGoDuration(text, goDurationMs);
  const problem = (message: string) => [adoptionFinding(set, 'RG4004', labelKeys.minTimeBetweenZones, message)];
  if (ms === undefined) {
    return { findings: problem(`${labelKeys.minTimeBetweenZones} is ${shown(text)}, which is not a Go duration such as 12h or 90m`) };
  }
  if (ms < 0)
    return settingOf('0s', problem(`${labelKeys.minTimeBetweenZones} is ${shown(text)}; a negative time never makes a zone wait`));
  return settingOf(formatDuration(ms));
}

/** Reads the annotation grafana.com/rollout-force-replicas. It has no effect if grafana/rollout-operator does not write the replicas. */
export function readForceReplicas(set: AdoptedStatefulSet, ignoredBecause: string | undefined): Reading<number> {
  const field = annotationKeys.forceReplicas;
  const text = set.annotations[field];
  if (text === undefined) return off;
  const value = goInteger(text);
  const reason = value === undefined || value < 0 || value > 2_147_483_647 ? 'is not an integer from 0 to 2147483647' : ignoredBecause;
  if (value !== undefined && reason === undefined) return settingOf(value);
  return { findings: [adoptionFinding(set, 'RG4010', field, `${field} is ${shown(text)} and is ignored: it ${reason}`)] };
}

/** Reads a label or annotation that is on only with the exact value `true`. */
export function readFlag(
  set: AdoptedStatefulSet,
  where: 'labels' | 'annotations',
  key: string,
): { readonly value: boolean; readonly findings: readonly AdoptionFinding[] } {
  const text = set[where][key];
  if (text === undefined || text === 'true') return { value: text === 'true', findings: [] };
  const looksTrue = /^\s*(?:true|t|1|yes|y|on|enabled?)\s*$/i.test(text);
  const message = `${key} is ${shown(text)} and counts as off; only the exact value "true" switches it on`;
  return { value: false, findings: looksTrue ? [adoptionFinding(set, 'RG4015', key, message)] : [] };
}

/** Parses a duration with `parse`; undefined if the text is too long or invalid, or the duration is outside the range of Go durations. */
export function withinGoDuration(text: string, parse: (text: string) => number | undefined): number | undefined {
  const ms = text.length <= longestGoDuration.characters ? parse(text) : undefined;
  return ms !== undefined && Math.abs(ms) <= longestGoDuration.ms ? ms : undefined;
}

/** Parses a boolean as Go's strconv.ParseBool does; returns undefined for other text. */
export function goBoolean(text: string): boolean | undefined {
  if (/^(?:1|t|T|TRUE|true|True)$/.test(text)) return true;
  return /^(?:0|f|F|FALSE|false|False)$/.test(text) ? false : undefined;
}

/** Parses a decimal integer as Go's strconv.Atoi does; returns undefined beyond 64 bits. */
function goInteger(text: string): number | undefined {
  const [, sign, digits] = /^([+-]?)0*(\d{1,19})$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const isNegative = sign === '-';
  if (BigInt(digits) > 9_223_372_036_854_775_807n + (isNegative ? 1n : 0n)) return undefined;
  return isNegative ? 0 - Number(digits) : Number(digits);
}

/** A mirrored object as in a policy file. */
export interface MirrorInput {
  readonly from: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly read: 'scale' };
  readonly writeBack: 'none' | 'status';
  readonly onMissing: 'hold';
}

/** The source of replicas. Without leader and mirror, users or an autoscaler write them. */
export interface ReplicasReading {
  readonly leader?: string;
  readonly mirror?: MirrorInput;
  /** True if grafana/rollout-operator writes the replicas, so that forced replicas are effective. */
  readonly isWritten: boolean;
  readonly hold?: ScalingBlock;
  readonly findings: Reading<never>['findings'];
}

/** Reads leader and mirror. If both are set, the leader counts; grafana/rollout-operator alternates. A StatefulSet cannot follow itself. */
export function readReplicas(set: AdoptedStatefulSet, groupMembers: ReadonlySet<string>): ReplicasReading {
  const leaderText = set.annotations[annotationKeys.leader];
  const mirror = readMirror(set);
  if (leaderText === undefined || leaderText === set.name) {
    const isWritten = leaderText !== undefined || mirror.value !== undefined;
    return { isWritten, findings: mirror.findings, ...defined({ mirror: mirror.value, hold: mirror.hold }) };
  }
  const isMirrorNamed = mirror.value !== undefined || mirror.hold !== undefined;
  const message = `${annotationKeys.mirrorName} is ignored because ${annotationKeys.leader} names a leader; the leader decides`;
  const conflict = isMirrorNamed ? [adoptionFinding(set, 'RG4003', annotationKeys.mirrorName, message)] : [];
  if (groupMembers.has(leaderText)) return { leader: leaderText, isWritten: true, findings: conflict };
  const text = `${annotationKeys.leader} is ${shown(leaderText)}, which names no StatefulSet of the group`;
  const stranger = blockScaling(set, 'RG4002', { field: annotationKeys.leader, text });
  return { isWritten: false, findings: [...stranger.findings, ...conflict], ...(stranger.hold && { hold: stranger.hold }) };
}

/** Reads the mirrored object. Mirroring is off if name or kind is empty. Only the cluster knows whether the kind exists. */
function readMirror(set: AdoptedStatefulSet): Reading<MirrorInput> {
  const { mirrorName, mirrorKind, mirrorApiVersion } = annotationKeys;
  const name = set.annotations[mirrorName] ?? '';
  const kind = set.annotations[mirrorKind] ?? '';
  if (name === '' && kind === '') return off;
  if (name === '' || kind === '') {
    const [present, missing] = name === '' ? [mirrorKind, mirrorName] : [mirrorName, mirrorKind];
    const message = `${present} is ignored because ${missing} is missing; no replicas are mirrored`;
    return { findings: [adoptionFinding(set, 'RG4021', present, message)] };
  }
  const apiVersion = set.annotations[mirrorApiVersion] ?? '';
  const problem = referenceProblem({ name, kind, apiVersion });
  if (problem !== undefined) return blockScaling(set, 'RG4008', problem);
  const writeBack = readWriteBack(set);
  const from = { apiVersion: apiVersion === '/' ? '' : apiVersion, kind, name, read: 'scale' } as const;
  return settingOf({ from, writeBack: writeBack.value ? 'status' : 'none', onMissing: 'hold' }, writeBack.findings);
}

/** Returns the annotation that is invalid in a reference, with the reason; undefined if the reference is valid. */
function referenceProblem({ name, kind, apiVersion }: Record<'name' | 'kind' | 'apiVersion', string>): ScalingBlock | undefined {
  const { mirrorName, mirrorKind, mirrorApiVersion } = annotationKeys;
  const problem = (field: string, text: string): ScalingBlock => ({ field, text: `${field} is ${text}` });
  if (apiVersion !== '/' && apiVersion.split('/').length > 2)
    return problem(mirrorApiVersion, `${shown(apiVersion)}, which is not a group/version`);
  if (apiVersion.length > 253) return problem(mirrorApiVersion, 'longer than 253 characters');
  if (kind.length > 63) return problem(mirrorKind, `${shown(kind)}, which is not a kind`);
  return name.length > 253 ? problem(mirrorName, 'longer than 253 characters') : undefined;
}

/** Reads whether replicas are written back: true by default, false for text that is not a boolean. */
function readWriteBack(set: AdoptedStatefulSet): Reading<boolean> {
  const field = annotationKeys.mirrorWriteBack;
  const text = set.annotations[field];
  if (text === undefined) return settingOf(true);
  const value = goBoolean(text);
  if (value !== undefined) return settingOf(value);
  return settingOf(false, [adoptionFinding(set, 'RG4009', field, `${field} is ${shown(text)}, which is not a boolean; false is used`)]);
}

/** An endpoint as in a policy file, without its default timeout. */
type EndpointInput = Readonly<Omit<EndpointSpec, 'timeout'>>;

const longestPath = 1024;

/** Reads the label prepare-downscale with port and path. Without a port or a path, grafana/rollout-operator denies every downscale. */
export function readPrepare(set: AdoptedStatefulSet): Reading<{ readonly endpoint: EndpointInput }> {
  const flag = readFlag(set, 'labels', labelKeys.prepareDownscale);
  if (!flag.value) return { findings: flag.findings };
  const { preparePort, preparePath } = annotationKeys;
  const portText = set.annotations[preparePort] ?? '';
  const pathText = set.annotations[preparePath] ?? '';
  const refuse = (field: string, text: string) => blockScaling(set, 'RG4007', { field, text, only: 'down' });
  if (portText === '') return refuse(preparePort, `${preparePort} is missing, so no pod can be prepared`);
  if (pathText === '') return refuse(preparePath, `${preparePath} is missing, so no pod can be prepared`);
  if (set.serviceName === '') return refuse('spec.serviceName', 'spec.serviceName is missing, so the pods have no DNS name');
  const port = portNumber(portText);
  if (port === undefined) return refuse(preparePort, `${preparePort} is ${shown(portText)}, which is not a port`);
  // grafana/rollout-operator adds a slash to the annotation, also if it has one: `/path` becomes `//path`. We do not keep the second slash.
  const parts = urlParts(`http://pod:${port}/${pathText.replace(/^\//, '')}`);
  const path = parts && endpointPath(parts);
  if (path === undefined) return refuse(preparePath, `${preparePath} is ${shown(pathText)}, which is not a URL path`);
  return settingOf({ endpoint: { scheme: 'http', port, path } });
}

/** Reads the delayed downscale. An unparsable delay or URL blocks all scaling; a URL that is unusable for pods blocks only scaling down. */
export function readDelayed(set: AdoptedStatefulSet): Reading<{ readonly after: string; readonly endpoint: EndpointInput }> {
  const { delay, delayedUrl } = annotationKeys;
  const delayText = set.annotations[delay] ?? '';
  const urlText = set.annotations[delayedUrl] ?? '';
  if (delayText === '' && urlText === '') return off;
  if (delayText === '' || urlText === '') {
    const [present, missing] = delayText === '' ? [delayedUrl, delay] : [delay, delayedUrl];
    const message = `${present} is ignored because ${missing} is missing; pods are deleted without delay`;
    return { findings: [adoptionFinding(set, 'RG4020', present, message)] };
  }
  const ms = withinGoDuration(delayText, prometheusDurationMs);
  if (ms === undefined) {
    const text = `${delay} is ${shown(delayText)}, which is not a Prometheus duration such as 12h or 1d`;
    return blockScaling(set, 'RG4005', { field: delay, text });
  }
  const parts = urlParts(urlText);
  if (!parts) return blockScaling(set, 'RG4006', { field: delayedUrl, text: `${delayedUrl} is ${shownUrl(urlText)}, which is not a URL` });
  if (ms === 0) return off;
  if (set.serviceName === '') {
    const text = 'spec.serviceName is missing, so the pods have no DNS name';
    return blockScaling(set, 'RG4005', { field: 'spec.serviceName', text });
  }
  const endpoint = delayedEndpoint(parts);
  if (typeof endpoint === 'string') {
    const text = `${delayedUrl} is ${shownUrl(urlText)}, ${endpoint}`;
    return blockScaling(set, 'RG4006', { field: delayedUrl, text, only: 'down' });
  }
  return settingOf({ after: formatDuration(ms), endpoint }, userInformationFindings(set, parts));
}

/** Returns the endpoint, or the reason why it cannot be used for pods. */
function delayedEndpoint(parts: UrlParts): EndpointInput | string {
  const { scheme } = parts;
  if (scheme !== 'http' && scheme !== 'https') return 'which is neither http nor https';
  if (!parts.hasHost) return 'which has no host';
  const port = parts.port === '' ? (scheme === 'https' ? 443 : 80) : portNumber(parts.port);
  if (port === undefined) return 'whose port is out of range';
  const path = endpointPath(parts);
  return path === undefined ? `whose path is longer than ${longestPath} characters` : { scheme, port, path };
}

/** Returns path and query as sent: with a leading slash, and with percent-encoding where the schema needs it. */
function endpointPath({ pathAndQuery }: UrlParts): string | undefined {
  const path = encodedPath(pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`);
  return path.length <= longestPath ? path : undefined;
}

function portNumber(text: string): number | undefined {
  const port = /^0*(\d{1,5})$/.exec(text)?.[1];
  return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535 ? Number(port) : undefined;
}

/** Reports a user in the URL. grafana/rollout-operator sends it with every request; policy files have no field for it. */
function userInformationFindings(set: AdoptedStatefulSet, { hasUserInformation }: UrlParts): readonly AdoptionFinding[] {
  const field = annotationKeys.delayedUrl;
  const message = `${field} contains a user, which is omitted; requests to pods have no user`;
  return hasUserInformation ? [adoptionFinding(set, 'RG4016', field, message)] : [];
}

function shownUrl(text: string): string {
  return shown(text.replace(/\/\/.*@/s, '//'));
}
