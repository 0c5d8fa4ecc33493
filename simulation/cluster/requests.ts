// Models people who answer waves and request changes of a run with the plugin, and the webhook that records the requester.

import type { PublishedDecision, PublishedRun } from '../../engine/publish/published.ts';
import { isRolledBack } from '../../engine/publish/status.ts';
import { digestOfWaves } from '../../engine/run/requests.ts';
import { intentObject, type LiveIntent } from '../../policies/live/intents.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { strategyTraits } from '../../policies/strategies.ts';
import { rightStamp } from '../../webhook/native/stamp-endpoint.ts';
import { configMapResource, field, groupResource, intentResource, parsed, statefulSetResource, textAt } from '../objects.ts';
import type { Person, PersonRequest } from '../scenario.ts';
import type { World } from './world.ts';

interface RequestsOptions extends Pick<World, 'server' | 'scheduler' | 'wallMs'> {
  readonly namespace: string;
  readonly group: string;
  readonly report: (what: string) => void;
}

type Spec = Partial<Pick<LiveIntent, 'runId' | 'wave' | 'digest' | 'rollback'>> & Pick<LiveIntent, 'action'>;

/** The interval at which people look at the group after all faults, and the pause before another retry. */
const checkEveryMs = 20_000;
const retryIntervalMs = 120_000;

export class Requests {
  readonly #options: RequestsOptions;
  #retriedMs = Number.NEGATIVE_INFINITY;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** Submits the request as the plugin does, about the run that an agent published. Returns false if the plugin would refuse it. */
  submit(request: PersonRequest, by: Person, isUnverified = false): boolean {
    const decision = this.#published();
    const about = decision?.run === undefined ? undefined : specs[request](decision, decision.run, () => this.#digest());
    if (decision?.run === undefined || about === undefined) return false;
    const spec: Spec = { ...about, runId: decision.run.id };
    const { server, namespace, group, wallMs, report } = this.#options;
    const user = { name: `${by}@example.com`, groups: ['oncall'] };
    const object = intentObject({ namespace, group }, spec, `${JSON.stringify(spec)} ${wallMs()} ${user.name}`);
    const how = isUnverified ? ' without the webhook' : '';
    report(`${by} requests ${request}${spec.wave === undefined ? '' : ` of ${spec.wave}`} in run ${spec.runId}${how}`);
    const stamp = isUnverified ? {} : { requestedBy: rightStamp({ operation: 'CREATE', user, object }, wallMs()) };
    server.create({ user: user.name }, intentResource, { ...object, spec: { ...object.spec, ...stamp } });
    return true;
  }

  /** Begins to approve every wave that waits for it, if there are approvers, and to retry every run that has failed or waits for it. */
  heal(approvers: readonly Person[]): void {
    const { scheduler } = this.#options;
    scheduler.after(checkEveryMs, () => this.heal(approvers));
    for (const person of approvers) this.submit('approve', person);
    if (scheduler.nowMs() - this.#retriedMs >= retryIntervalMs && this.submit('retry', 'alice')) this.#retriedMs = scheduler.nowMs();
  }

  /** Returns the digest of the stored waves. The plugin uses it if no agent published the digest, for example after a rejection. */
  #digest(): string | undefined {
    const { server, namespace, group } = this.#options;
    const statefulSets = server.list(statefulSetResource, namespace);
    const objects = [server.get(groupResource, namespace, group)];
    const [definition] = resolveLive({ objects, statefulSets, order: ['objects'], agentNamespace: namespace }).groups;
    return definition && digestOfWaves(definition);
  }

  #published(): PublishedDecision | undefined {
    const { server, namespace, group } = this.#options;
    const stored = field(server.get(groupResource, namespace, group), 'status', 'decision');
    const map = server.get(configMapResource, namespace, `rollout-status-${group}`);
    return (stored ?? parsed(textAt(map, 'data', 'decision'))) as PublishedDecision | undefined;
  }
}

type SpecOf = (
  decision: PublishedDecision,
  run: PublishedRun,
  digestOfDefinition: () => string | undefined,
) => Omit<Spec, 'runId'> | undefined;

/** Returns the specs of the requests that the plugin sends in this state; undefined if it refuses the request. */
const specs: Readonly<Record<PersonRequest, SpecOf>> = {
  approve: (decision, run, digestOfDefinition) => {
    const answer = answerOf('approve', decision, run);
    const digest = decision.waits.find((wait) => wait.rule === 'approval')?.digest ?? digestOfDefinition();
    return answer === undefined || digest === undefined ? undefined : { ...answer, digest };
  },
  reject: (decision, run) => answerOf('reject', decision, run),
  promote: ({ wave }, run) => (run.outcome === 'running' && wave !== undefined ? { action: 'promote', wave: wave.name } : undefined),
  abort: (_, run) => (run.outcome === 'running' ? { action: 'abort' } : undefined),
  rollback: ({ strategy }, run) =>
    strategy !== undefined && strategyTraits[strategy].canRollBack && run.kind === 'rollout' && run.outcome !== 'completed'
      ? { action: 'abort', rollback: true }
      : undefined,
  retry: (decision, run) => {
    const isBlocked = run.outcome === 'failed' || isRolledBack(decision) || decision.waits.some(({ rule }) => rule === 'pin-applied');
    return isBlocked ? { action: 'retry' } : undefined;
  },
};

function answerOf(action: 'approve' | 'reject', { wave, waits }: PublishedDecision, run: PublishedRun): Omit<Spec, 'runId'> | undefined {
  const isAsked = waits.some(({ rule }) => rule === 'approval') && run.outcome !== 'completed';
  return isAsked && wave !== undefined ? { action, wave: wave.name } : undefined;
}
