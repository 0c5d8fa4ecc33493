// Judges each request of agents: safe verbs, preconditions, dry runs without effect, true reports, few conflicts in a row (S10, S20, S29, L9, L11).

import type { TurnReport } from '../../agent/report.ts';
import { field, isAgent, listAt, parsed } from '../objects.ts';
import type { Answered } from '../server/request.ts';
import type { Oracle, Scene } from './oracle.ts';

const neverDeleted = new Set(['statefulsets.apps', 'persistentvolumeclaims', 'persistentvolumes', 'namespaces', 'nodes']);
/** The resources of reads that use POST. */
const reviews = /^(?:self)?subject(?:access|rules)?reviews\.|^tokenreviews\./;

/** The limit of consecutive conflicts of one process on one object. Other writers never cause so many. */
const conflictLimit = 20;

/** Creates the judge. It also judges rejected requests, because an agent must not rely on a rejection. */
export function judgeRequests(scene: Scene): Oracle {
  const conflicts = new Map<string, number>();
  /** The time at which requests failed because their object had another resource version. */
  const outdated = new Map<string, number>();
  /** The last request of a process about an object. */
  const last = new Map<string, { readonly status: number; readonly sentAtMs: number }>();
  /** The end of the last turn of each process. */
  const ended = new Map<string, number>();
  return {
    turnEnded: (process, report) => {
      checkReported(scene, process, report, (name) => {
        const answer = last.get(`${process} ${name}`);
        // An answer in place of the API server is not known here, so the last known one may be of an earlier turn.
        return answer === undefined || answer.sentAtMs < (ended.get(process) ?? 0) ? undefined : answer.status;
      });
      ended.set(process, scene.nowMs());
    },
    answered: (answered) => {
      const { verb, resource, request, isDryRun, revisions } = answered;
      if (verb === 'get' || verb === 'list' || !isAgent(request.actor, scene.agentUser) || reviews.test(resource)) return;
      if (isDryRun && revisions.length > 0) scene.violated('S29', `${describe(answered)}, a dry run, has changed something`);
      if (isDryRun) return;
      const by = request.actor.process ?? '';
      const body = parsed(request.body);
      const report = (invariant: 'S10' | 'S20', what: string): void => scene.violated(invariant, `${describe(answered)} ${what}`);
      checkBody(answered, body, report);
      if (isRepeated(outdated, answered, { body, nowMs: scene.nowMs() }))
        report('S20', 'is repeated, although the object has had another resourceVersion since');
      last.set(`${by} ${answered.name}`, { status: answered.status, sentAtMs: request.actor.sentAtMs ?? scene.nowMs() });
      const isAtLimit = countConflicts(conflicts, answered);
      if (isAtLimit) scene.violated('L11', `${describe(answered)} met ${conflictLimit} conflicts in a row`);
    },
  };
}

/** Checks L9: an action that failed because its object changed is not reported as rejected. A webhook may deny with 409. */
function checkReported(scene: Scene, process: string, { performed }: TurnReport, statusOf: (name: string) => number | undefined): void {
  for (const { action, result } of performed) {
    if (!('uid' in action) || result !== 'refused') continue;
    const name = 'pod' in action ? action.pod : action.statefulSet;
    const status = statusOf(name);
    if (scene.webhooks === undefined && (status === 404 || status === 409))
      scene.violated('L9', `${process} reports that ${action.kind} of ${name} was rejected, but the API server answered ${status}`);
  }
}

type Report = (invariant: 'S10' | 'S20', what: string) => void;

function describe({ request, verb, resource, subresource, namespace, name }: Answered): string {
  return `${request.actor.process ?? request.actor.user}: ${verb} ${resource}${subresource === '' ? '' : `/${subresource}`} ${namespace}/${name}`;
}

function checkBody(answered: Answered, body: unknown, report: Report): void {
  if (answered.verb === 'delete') checkDelete(answered, body, report);
  else if (answered.verb === 'create') checkCreate(answered, body, report);
  else checkChange(answered, body, report);
}

function checkDelete({ resource, subresource, name }: Answered, body: unknown, report: Report): void {
  if (name === '') report('S10', 'deletes a whole collection');
  if (neverDeleted.has(resource) && subresource === '') report('S10', 'deletes an object that holds data');
  if (field(body, 'gracePeriodSeconds') === 0) report('S10', 'sets a grace period of 0');
  if (field(body, 'preconditions', 'uid') === undefined) report('S20', 'has no UID as precondition');
  if (field(body, 'preconditions', 'resourceVersion') === undefined) report('S20', 'has no resourceVersion');
}

function checkCreate({ subresource }: Answered, body: unknown, report: Report): void {
  if (subresource === 'eviction') {
    if (field(body, 'deleteOptions', 'preconditions', 'uid') === undefined) report('S20', 'has no UID as precondition');
    if (field(body, 'deleteOptions', 'gracePeriodSeconds') === 0) report('S10', 'sets a grace period of 0');
  } else if (field(body, 'metadata', 'name') === undefined) report('S20', 'leaves the name to the server');
}

function checkChange({ verb, request }: Answered, body: unknown, report: Report): void {
  const { path, contentType = 'application/json' } = request;
  if (listAt(body, 'metadata', 'finalizers').length === 0 && namesFinalizers(body)) report('S10', 'removes finalizers');
  if (contentType.includes('apply-patch')) {
    if (/[?&]force=true\b/.test(path)) report('S20', 'takes over fields of other managers');
    return;
  }
  const tests = Array.isArray(body) && body.some((operation) => field(operation, 'op') === 'test');
  if (tests) return;
  if (field(body, 'metadata', 'resourceVersion') === undefined)
    report('S20', `has no resourceVersion${verb === 'patch' ? ' and no test' : ''}`);
}

function namesFinalizers(body: unknown): boolean {
  if (Array.isArray(body)) return body.some((operation) => String(field(operation, 'path') ?? '').startsWith('/metadata/finalizers'));
  const metadata = field(body, 'metadata');
  return typeof metadata === 'object' && metadata !== null && 'finalizers' in metadata;
}

/**
 * Returns whether an agent sent this request after the API server denied it with 409. Its resource version is outdated then, and every
 * later read of the object shows that. A delayed request may arrive after the denial of a later one.
 */
function isRepeated(
  outdated: Map<string, number>,
  { request, verb, resource, name, status }: Answered,
  { body, nowMs }: { readonly body: unknown; readonly nowMs: number },
): boolean {
  const { process = '', site, sentAtMs = nowMs } = request.actor;
  const version = field(body, 'preconditions', 'resourceVersion') ?? field(body, 'metadata', 'resourceVersion');
  if (version === undefined || site?.startsWith('act.') !== true) return false;
  const key = `${process} ${verb} ${resource} ${name} ${String(version)}`;
  const deniedMs = outdated.get(key);
  if (status === 409) outdated.set(key, deniedMs ?? nowMs);
  return deniedMs !== undefined && sentAtMs >= deniedMs;
}

/** Counts consecutive conflicts and returns true at the limit. Conflicts on Leases are normal and do not count. */
function countConflicts(conflicts: Map<string, number>, { request, resource, namespace, name, status }: Answered): boolean {
  if (resource.startsWith('leases')) return false;
  const key = `${request.actor.process ?? ''} ${resource} ${namespace}/${name}`;
  if (status !== 409) {
    conflicts.delete(key);
    return false;
  }
  const count = (conflicts.get(key) ?? 0) + 1;
  conflicts.set(key, count);
  return count === conflictLimit;
}
