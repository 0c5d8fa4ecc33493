// Carries out the actions of one decision in their order, asking before each request whether this process may still act.
import { podUrl } from '../../cluster/pods/pod-url.ts';
import { noteAnswers, type PodAnswer } from '../../engine/decide/preparations.ts';
import { type Action, replacedBy } from '../../engine/decision.ts';
import { profileOf } from '../../engine/profiles.ts';
import { isUnknown, type Ledger, type PodView, type Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { PerformedAction } from '../report.ts';
import type { SourceReference } from '../watched/replica-sources.ts';
import { type Acted, act } from './act.ts';
import { askToPrepare, askToStay, type CalledPod } from './pod-calls.ts';

type CallPods = Extract<Action, { readonly kind: 'callPods' }>;

interface PerformOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'clusterDomain' | 'podTimeoutMs'>;
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  /** The mirrored objects as they were read for this decision. */
  readonly references: readonly SourceReference[];
  /** Timeout of each request to the API server in milliseconds. */
  readonly timeoutMs: number;
  readonly mayAct: () => boolean;
  /** States how long a call to a pod may take that is sent now, in milliseconds; 0 or less when none may be. */
  readonly leftMs: () => number;
  /** Asked before each request by which pods go or replicas change: whether the rest of the decision still holds by what is known now. */
  readonly mayDisrupt: (remaining: readonly Action[]) => boolean;
  /** Called once, before the first request leaves. */
  readonly onFirst: () => void;
}

/** What became of an action. */
export type Outcome = PerformedAction & Pick<Acted, 'status' | 'retryAfterMs' | 'changed'> & { readonly answers?: readonly PodAnswer[] };

/**
 * Carries out the actions one after the other. After one whose fate is not known, or that did not get through, the rest is left: the next
 * decision knows more. So it is when something has happened, or time has run away, while the ledger or a pod was slow. Answers only for actions
 * that were begun.
 */
export async function perform(actions: readonly Action[], options: PerformOptions): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [index, action] of actions.entries()) {
    if (!options.mayAct() || (needsFreshSnapshot(action) && !options.mayDisrupt(actions.slice(index)))) break;
    if (outcomes.length === 0) options.onFirst();
    const outcome = action.kind === 'callPods' ? await callPods(action, options) : await onObject(action, options);
    outcomes.push(outcome);
    if (action.kind !== 'callPods' && (outcome.result === 'unknown' || outcome.result === 'failed')) break;
  }
  return outcomes;
}

/** Reports whether pods go, or will go, by the action. */
export function isDestructive(action: Action): boolean {
  return replacedBy(action).length > 0 || (action.kind === 'scaleStatefulSet' && action.to < action.from);
}

/**
 * Whether the action is not to be decided from what was seen long ago. More replicas take nothing from anybody; but what they follow may have
 * changed since, and then they are taken back.
 */
export function needsFreshSnapshot(action: Action): boolean {
  return isDestructive(action) || action.kind === 'scaleStatefulSet';
}

async function onObject(action: Exclude<Action, CallPods>, { env, timeoutMs, mayAct, references }: PerformOptions): Promise<Outcome> {
  const sourceOf = ({ namespace, name }: { readonly namespace: string; readonly name: string; readonly resourceKind: string }) =>
    references.find((reference) => reference.namespace === namespace && reference.name === name);
  return { action, ...(await act(env, action, { timeoutMs, mayAct, sourceOf })) };
}

/** The pods that stand in the place of the ordinals, in their order. One that does not exist has nothing to prepare, and nothing to take back. */
export function calledPods({ namespace, statefulSet, ordinals }: CallPods, snapshot: Snapshot): readonly PodView[] {
  const known = snapshot.pods.find((view) => view.namespace === namespace && view.statefulSet === statefulSet)?.pods;
  if (known === undefined || isUnknown(known)) return [];
  return ordinals.flatMap((ordinal) => known.find((pod) => pod.ordinal === ordinal) ?? []);
}

async function callPods(action: CallPods, { env, config, group, snapshot, leftMs }: PerformOptions): Promise<Outcome> {
  const zone = group.zones.find(({ name }) => name === action.zone);
  const endpoint = (action.call === 'delayed' ? zone?.delayed : zone?.prepare)?.endpoint;
  const standing = calledPods(action, snapshot);
  if (endpoint === undefined) {
    // The policy does not name an endpoint any more: nobody can be told, and nobody waits for it.
    env.log.error('pods cannot be told to stay: no endpoint is defined', { group: group.name, zone: action.zone });
    const answers =
      action.method === 'POST' ? [] : standing.map(({ ordinal, uid }): PodAnswer => ({ ordinal, podUid: uid, result: 'done' }));
    return { action, result: 'refused', message: 'no endpoint is defined', answers };
  }
  const serviceName = snapshot.statefulSets.find(
    ({ namespace, name }) => namespace === action.namespace && name === action.statefulSet,
  )?.serviceName;
  const urlOf = (pod: PodView): CalledPod['url'] => {
    try {
      return podUrl(
        { namespace: action.namespace, pod: pod.name, serviceName: serviceName ?? '', clusterDomain: config.clusterDomain },
        endpoint,
      );
    } catch (error) {
      return { problem: messageOf(error) };
    }
  };
  const pods = standing.map((pod) => ({ ordinal: pod.ordinal, uid: pod.uid, name: pod.name, url: urlOf(pod) }));
  const timeoutMs = profileOf(group).podCallTimeout === 'flag' ? config.podTimeoutMs : durationMs(endpoint.timeout);
  const ask = action.method === 'POST' ? askToPrepare : askToStay;
  const answers = await ask(env, pods, { call: action.call, timeoutMs, leftMs });
  const failed = answers.find(({ result }) => result === 'failed');
  if (failed !== undefined) {
    const name = pods.find(({ ordinal }) => ordinal === failed.ordinal)?.name;
    return { action, result: 'failed', message: `${name}: ${failed.message ?? 'it did not answer'}`, answers };
  }
  return { action, result: answers.length === pods.length && pods.length > 0 ? 'done' : 'conflict', answers };
}

/** The ledger after what the pods answered. */
export function withAnswers(ledger: Ledger, outcomes: readonly Outcome[], nowMs: number): Ledger {
  let current = ledger;
  for (const { action, answers = [] } of outcomes) {
    if (action.kind === 'callPods' && answers.length > 0) current = noteAnswers(current, action, answers, nowMs);
  }
  return current;
}
