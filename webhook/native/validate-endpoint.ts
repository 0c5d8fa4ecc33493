// Serves /admission/validate, which denies objects of our kinds if lint finds errors in them.
import { asJsonObject, isJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { namedSecretProblem, type SecretReader, secretReader } from '../../cluster/request/secret.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { endpointPaths } from '../../install/object.ts';
import { type Finding, pointerText, sortFindings } from '../../policies/findings/finding.ts';
import { instantMs } from '../../policies/instant.ts';
import { type SecretKey, secretKeysOf } from '../../policies/integrations/channel.ts';
import { checkDocuments } from '../../policies/lint/lint.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import { resolvePolicies } from '../../policies/resolve/resolve.ts';
import { apiGroup, resourceOfKind } from '../../policies/schema/kinds.ts';
import type { PlacementGuard, WebhookEnv } from '../env.ts';
import { type Answer, boundedText, type Call, deny, type Endpoint, leftMs, type Review } from '../review/review.ts';
import { createsStop, isStamped, rightStamp, specOf, stampField } from './stamp-endpoint.ts';

interface ValidateOptions {
  /** Policies in this namespace may name other namespaces. */
  readonly agentNamespace: string;
  /** Returns the groups of a namespace. While they are unknown, requests for unknown groups, zones, waves and gates pass. */
  readonly groups: PlacementGuard['groups'];
}

/** Limit of the message in bytes. The webhook server would cut a longer message within a finding. */
const longestMessage = 1000;
const longestLine = 320;
/** API servers may cut longer warnings. */
const longestWarning = 250;
const maxWarnings = 10;

/**
 * Returns the endpoint. It denies objects with errors (422, a line per error) or a wrong requester (403), and warns about missing Secrets.
 * A request (RolloutIntent, RolloutException) for a group, zone, wave or gate that does not exist has an error, because it has no effect.
 * Deletions and updates without a change of the spec pass, so that an invalid object can be deleted.
 */
export function validateEndpoint(env: Pick<WebhookEnv, 'clock' | 'kubernetes'>, options: ValidateOptions): Endpoint {
  return {
    path: endpointPaths.validate,
    handle: async (review, call) => {
      if (!isConcerned(review)) return { allowed: true };
      const answer = validate(review, await findingsOf(env, review, options, call));
      return answer.allowed ? withWarnings(answer, await missingSecrets(env, review, options, call)) : answer;
    },
    // The agent ignores objects with errors, but it trusts the requester. Only objects with a requester fail closed, except new stops.
    onFailure: (review, problem) =>
      isConcerned(review) && isStamped(review) && !createsStop(review)
        ? deny(500, `the object is denied because it could not be checked: ${problem}`)
        : { allowed: true, warnings: [boundedText(`the object was not checked: ${problem}`, longestWarning)] },
  };
}

function isConcerned({ resource, subresource, operation, object, oldObject }: Review): boolean {
  if (resource.group !== apiGroup || subresource !== '') return false;
  if (operation === 'UPDATE') return !isSameJson(specOf(object), specOf(oldObject));
  return operation === 'CREATE';
}

function validate(review: Review, findings: readonly Finding[]): Answer {
  if (review.object === undefined) return deny(400, 'the request has no object');
  const problem = requesterProblem(review);
  if (problem !== undefined) return deny(403, problem);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const warnings = findings.filter(({ severity }) => severity === 'warning').map((one) => boundedText(lineOf(one), longestWarning));
  const answer: Answer = errors.length === 0 ? { allowed: true } : deny(422, refusal(review, errors));
  return withWarnings(answer, atMost(warnings, maxWarnings));
}

function withWarnings(answer: Answer, more: readonly string[]): Answer {
  return more.length === 0 ? answer : { ...answer, warnings: [...(answer.warnings ?? []), ...more] };
}

/**
 * Returns a problem if the requester in the object is not the user of the request. An absent requester is no problem. The time of the stamp
 * is not compared: another process may have stamped the request, and its clock may differ.
 */
function requesterProblem(review: Review): string | undefined {
  const claimed = specOf(review.object)[stampField];
  if (!isStamped(review) || claimed === undefined) return undefined;
  const atMs = instantMs(String(asJsonObject(claimed)['at']));
  if (atMs !== undefined && isSameJson(claimed, rightStamp(review, atMs))) return undefined;
  return `spec.${stampField} does not match the authenticated user; leave it out, the webhook sets it`;
}

function refusal({ kind, namespace, name }: Review, errors: readonly Finding[]): string {
  const head = `${kind.kind} ${namespace}/${name} has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}:`;
  const lines = errors.map((one) => boundedText(lineOf(one), longestLine));
  let shown = lines.length;
  const text = (): string => [head, ...lines.slice(0, shown), ...more(lines.length - shown)].join('\n');
  while (shown > 1 && Buffer.byteLength(text()) > longestMessage) shown -= 1;
  return text();
}

function atMost(lines: readonly string[], count: number): readonly string[] {
  return lines.length <= count ? lines : [...lines.slice(0, count - 1), ...more(lines.length - count + 1)];
}

function more(count: number): readonly string[] {
  return count === 0 ? [] : [`and ${count} more; run kubectl rollout-group lint to see all`];
}

function lineOf({ code, pointer, message, hint }: Finding): string {
  const path = pointerText(pointer);
  // Many messages begin with the path.
  const place = path === '' || message.startsWith(path) ? '' : ` ${path}:`;
  return `${code}${place} ${message}${hint === undefined ? '' : ` (${hint})`}`.replace(/\s+/g, ' ');
}

/**
 * Returns the errors and warnings of the object, sorted by code and field. Of the other objects, only the groups that a request names
 * count: other objects may be applied later.
 */
async function findingsOf(
  env: Pick<WebhookEnv, 'clock' | 'kubernetes'>,
  review: Review,
  { agentNamespace, groups }: ValidateOptions,
  call: Call,
): Promise<readonly Finding[]> {
  const { object = {}, namespace } = review;
  const known = isStamped(review) ? groups(namespace) : { unknown: 'the object is no request' };
  const isKnown = !isUnknown(known);
  const load = loadObjects([withName(object)]);
  const resolution = resolvePolicies(load.documents);
  const checked = checkDocuments({
    load,
    bundle: isKnown ? { ...resolution.bundle, groups: known } : resolution.bundle,
    isCluster: isKnown,
    statefulSets: [],
    agentNamespace,
    engineRules: ruleCatalog.map(({ id }) => id),
  });
  const findings = sortFindings([...load.findings, ...resolution.findings, ...checked]).filter(({ severity }) => severity !== 'notice');
  if (!findings.some(isUnknownGroup) || !isKnown) return findings;
  const isAbsent = await isGroupAbsent(env, review, call);
  // Tools apply the files of a group in any order, so an exception may come before its group. A request is written for a running group.
  const severity = review.kind.kind === 'RolloutException' ? 'warning' : 'error';
  return findings.flatMap((one) => (!isUnknownGroup(one) ? [one] : isAbsent ? [{ ...one, severity } as const] : []));
}

function isUnknownGroup({ code }: Finding): boolean {
  return code === 'RG2301';
}

/** Returns whether the API server has no RolloutGroup of the requested name. The agent may not know a group yet that is new or invalid. */
async function isGroupAbsent(env: Pick<WebhookEnv, 'clock' | 'kubernetes'>, { object, namespace }: Review, call: Call): Promise<boolean> {
  const { group, target } = specOf(object);
  const name = String(group ?? asJsonObject(target)['group']);
  const timeoutMs = Math.max(1, Math.min(longestReadsMs, leftMs(call, env.clock.monotonicMs()) / 2));
  const read = getObject(env, resourceOfKind('RolloutGroup'), { namespace, name }, { site: 'validate.group', timeoutMs });
  return read.then((found) => found === undefined).catch(() => false);
}

/** Adds a name to an object with `generateName`, as the API server would do later. */
function withName(object: JsonObject): JsonObject {
  const { metadata } = object;
  if (!isJsonObject(metadata) || typeof metadata['generateName'] !== 'string' || metadata['name'] !== undefined) return object;
  return { ...object, metadata: { ...metadata, name: `${metadata['generateName'].slice(0, 248)}xxxxx` } };
}

/** Kubernetes recommends warnings of at most this length. */
const longestSecretWarning = 120;

/** Limit of the time for all reads, because a check must not delay the answer. */
const longestReadsMs = 1_000;

const consequences: Readonly<Record<string, string>> = {
  MetricSource: 'gates wait for it',
  NotificationChannel: 'notifications are not sent',
};

/** Returns a warning for each missing Secret or key, which a user may still create. Skips Secrets that cannot be read. */
async function missingSecrets(
  env: Pick<WebhookEnv, 'clock' | 'kubernetes'>,
  { object = {}, namespace }: Pick<Review, 'object' | 'namespace'>,
  { agentNamespace }: { readonly agentNamespace: string },
  call: Call,
): Promise<readonly string[]> {
  if (namespace !== agentNamespace) return [];
  // The list is empty if the schema does not accept the object.
  const [document] = loadObjects([withName(object)]).documents;
  const consequence = document === undefined ? undefined : consequences[document.kind];
  if (document === undefined || consequence === undefined) return [];
  const endsMs = env.clock.monotonicMs() + Math.min(longestReadsMs, leftMs(call, env.clock.monotonicMs()) / 2);
  const timeoutMs = (): number => Math.max(1, Math.floor(endsMs - env.clock.monotonicMs()));
  const read = secretReader(env, { namespace, site: 'validate.secret', timeoutMs });
  const keys = secretKeysOf(document, agentNamespace);
  const problems = await Promise.all(keys.map((key) => problemOf(key, read, namespace)));
  const lines = problems.flatMap((problem) =>
    problem === undefined ? [] : [boundedText(`${problem}: ${consequence}`, longestSecretWarning)],
  );
  return [...new Set(lines)];
}

async function problemOf(key: SecretKey, read: SecretReader, namespace: string): Promise<string | undefined> {
  try {
    const found = await read(key);
    return 'problem' in found ? namedSecretProblem(key, found.problem, namespace) : undefined;
  } catch {
    // The gate or the channel reports why it cannot read the Secret.
    return undefined;
  }
}
