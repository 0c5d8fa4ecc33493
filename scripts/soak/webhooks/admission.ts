// Models the calls of the API server to the webhooks of the agents: each call asks one ready process. The failure policies of the installed
// configurations decide about failed calls.

import { endpointPaths } from '../../../install/object.ts';
import { defined } from '../../../policies/values/defined.ts';
import type {
  Admission,
  AdmissionPorts,
  Admit,
  InstalledWebhook,
  ReviewedRequest,
  Reviewer,
  Verdict,
} from '../../../simulation/cluster/admitted.ts';
import { textAt } from '../../../simulation/objects.ts';
import type { Reviewed } from '../../../simulation/oracles/oracle.ts';
import { agentNamespace } from '../../../simulation/process/agents.ts';
import { latencyMs } from '../../../simulation/process/life.ts';
import { draw } from '../../../simulation/random.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import { jsonPatch } from '../../../simulation/server/json.ts';
import type { Actor, Json } from '../../../simulation/server/request.ts';
import type { Answer, PatchOperation, Review } from '../../../webhook/review/review.ts';
import { usualName } from '../groups/group-objects.ts';
import { createAgentAdmission } from './agent-requests.ts';
import { groupsOf, installedWebhooks, partsOf } from './installed.ts';

interface AdmissionOptions extends Omit<AdmissionPorts, 'server'> {
  readonly seed: number;
  readonly webhooks: readonly InstalledWebhook[];
}

/** The outcome of one call; without an answer, the call failed. */
interface Outcome {
  readonly key: string;
  readonly by: string;
  readonly answer?: Answer;
}

/** Creates the webhooks of the scenario; undefined if its groups have none. */
export function admissionOf({ seed, group, others = [] }: Scenario, ports: AdmissionPorts): Admission | undefined {
  if (group.webhooks !== true && group.disruption === undefined) return undefined;
  const namespaces = [usualName.namespace, ...others.map(({ namespace }) => namespace)];
  const webhooks = installedWebhooks({
    agentNamespace,
    namespaces: [...new Set(namespaces)],
    isEnforced: group.kind === 'native',
    hasZoneBudget: group.zoneBudget !== undefined,
  });
  const admission = createAdmission({ ...ports, seed, webhooks });
  return { ...admission, admit: createAgentAdmission({ server: ports.server, admission }) };
}

/** Creates the model. Half of the calls of `reinvocationPolicy: IfNeeded` are repeated, as after a change by another webhook. */
export function createAdmission(options: AdmissionOptions) {
  const { webhooks, seed } = options;
  const { call, setDelay } = createCalls(options);

  const change = (webhook: InstalledWebhook, request: ReviewedRequest, isRepeat: boolean, done: (result: Json | Denied) => void): void =>
    call({ webhook, request, isRepeat }, (outcome) => {
      const denied = denialBy(webhook, outcome);
      const object = patched(request.object ?? {}, outcome.answer?.patch ?? []);
      const repeats = webhook.isReinvoked && !isRepeat && outcome.answer?.allowed === true && draw(seed, `${outcome.key} again`) < 0.5;
      if (repeats) change(webhook, { ...request, object }, true, done);
      else done(denied ?? object);
    });

  const ask: Admit = (request, decided) => {
    const asked = webhooks.filter((webhook) => webhook.isAsked(request) !== false);
    const [validating, mutating] = [asked.filter((one) => !one.isMutating), asked.filter((one) => one.isMutating)];
    const mutate = (index: number, now: ReviewedRequest): void => {
      const webhook = mutating[index];
      if (webhook === undefined) validate({ asked: validating, request: now, call, sentAtMs: options.scheduler.nowMs() }, decided);
      else change(webhook, now, false, (result) => (isDenied(result) ? decided(result) : mutate(index + 1, { ...now, object: result })));
    };
    mutate(0, request);
  };
  return { ask, webhooks, setDelay };
}

interface Called {
  readonly webhook: InstalledWebhook;
  readonly request: ReviewedRequest;
  readonly isRepeat: boolean;
}

type Call = (called: Called, done: (outcome: Outcome) => void) => void;

function createCalls({ scheduler, seed, reviewers, note, reviewed }: AdmissionOptions) {
  let count = 0;
  let delayMs: number | undefined = 0;

  const call: Call = (called, done) => {
    const { webhook, request } = called;
    count += 1;
    const key = `review ${count}`;
    const ready = delayMs === undefined ? [] : reviewers();
    const one = ready[Math.floor(draw(seed, `${key} goes to`) * ready.length)];
    const by = one?.life.name ?? '';
    let isOver = false;
    const settle = (answer?: Answer): void => {
      if (isOver) return;
      isOver = true;
      cancelTimeout();
      const outcome = outcomeOf(answer);
      note(key, webhook.name, request.name, outcome);
      reviewed({ ...called, by, outcome, patch: answer?.patch ?? [], hasWarning: (answer?.warnings ?? []).length > 0 });
      done({ key, by, ...(answer === undefined ? {} : { answer }) });
    };
    const cancelTimeout = scheduler.after(webhook.timeoutMs, () => settle());
    const toMs = latencyMs(draw(seed, `${key} to`)) + (delayMs ?? 0);
    const arrive = ({ life, review }: Reviewer): void =>
      void review(webhook.path, objectReview(request, key)).then((answer) => {
        if (life.time.isAlive()) scheduler.after(latencyMs(draw(seed, `${key} from`)), () => settle(answer));
      });
    scheduler.after(toMs, () => (one === undefined ? settle() : one.life.time.take(() => arrive(one))));
  };
  return {
    call,
    /** Delays every call by this time; undefined makes every call fail at once. */
    setDelay: (next: number | undefined): void => {
      delayMs = next;
    },
  };
}

function outcomeOf(answer: Answer | undefined): Reviewed['outcome'] {
  return answer === undefined ? 'failed' : answer.allowed ? 'allowed' : 'denied';
}

interface Validation {
  readonly asked: readonly InstalledWebhook[];
  readonly request: ReviewedRequest;
  readonly call: Call;
  readonly sentAtMs: number;
}

/** Asks the validating webhooks at the same time. The first denial decides, and an approval needs every webhook. */
function validate({ asked, request, call, sentAtMs }: Validation, decided: (verdict: Verdict) => void): void {
  let { actor } = request;
  let left = asked.length;
  let isDecided = false;
  const decide = (verdict: Verdict): void => {
    if (isDecided) return;
    isDecided = true;
    decided(verdict);
  };
  const allowIfLast = (): void => {
    if (left === 0) decide({ isAllowed: true, actor, object: request.object ?? {} });
  };
  allowIfLast();
  for (const webhook of asked) {
    call({ webhook, request, isRepeat: false }, (outcome) => {
      left -= 1;
      actor = admitted(actor, webhook, outcome, { sentAtMs, uid: request.uid });
      const denied = denialBy(webhook, outcome);
      if (denied === undefined) allowIfLast();
      else decide(denied);
    });
  }
}

type Denied = Extract<Verdict, { readonly isAllowed: false }>;

function isDenied(result: Json | Denied): result is Denied {
  return result['isAllowed'] === false;
}

function denialBy({ name, failurePolicy }: InstalledWebhook, { answer }: Outcome): Denied | undefined {
  if (answer === undefined) {
    return failurePolicy === 'Ignore' ? undefined : { isAllowed: false, status: 500, message: `failed calling webhook "${name}"` };
  }
  const { allowed, code = 400, message = '' } = answer;
  return allowed ? undefined : { isAllowed: false, status: code, message: `admission webhook "${name}" denied the request: ${message}` };
}

/** Returns the actor with the admission, if this webhook judges disruptions. */
function admitted(
  actor: Actor,
  { path, failurePolicy, isJudging }: InstalledWebhook,
  { by, answer }: Outcome,
  request: Pick<NonNullable<Actor['admission']>, 'sentAtMs'> & { readonly uid: string | undefined },
): Actor {
  const { sentAtMs, uid } = request;
  if (!isJudging || answer === undefined || uid === undefined) return actor;
  const isJudged = path === endpointPaths.enforce ? answer.auditAnnotations?.['outcome'] === 'allow' : answer.allowed;
  // Only the answers of /admission/enforce name a group.
  const group = answer.auditAnnotations?.['group'] ?? actor.admission?.group;
  return { ...actor, admission: { by, sentAtMs, uid, failurePolicy, isJudged, group } };
}

function patched(object: Json, patch: readonly PatchOperation[]): Json {
  return patch.length === 0 ? object : ((jsonPatch(object, patch) as Json | undefined) ?? object);
}

/** Returns the review of the request as the API server sends it. */
function objectReview(
  { operation, resource, subresource, namespace, name, actor, object, oldObject }: ReviewedRequest,
  uid: string,
): Review {
  const { plural, group } = partsOf(resource);
  const [version = '', kindGroup = ''] = (textAt(object ?? oldObject, 'apiVersion') ?? '').split('/').reverse();
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid,
    kind: { group: kindGroup, version, kind: textAt(object ?? oldObject, 'kind') ?? '' },
    // All served versions of Kubernetes are v1. A subresource may have an object of another group.
    resource: { group, version: kindGroup === group ? version : 'v1', resource: plural },
    subresource,
    operation,
    namespace,
    name,
    user: { name: actor.user, groups: groupsOf(actor) },
    ...defined({ object, oldObject }),
    dryRun: false,
  };
}
