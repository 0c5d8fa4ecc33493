// A group whose runs are told, in virtual time: turns, the objects that the agent reads, services in memory, and processes that can die anywhere.
import type { AgentEnv, HttpResponse, NotifyRequest } from '../../../agent/env.ts';
import { Notifier } from '../../../agent/notify/notifier.ts';
import type { TurnReport } from '../../../agent/report.ts';
import { TransportFailure } from '../../../cluster/request/failure.ts';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { PodView, Snapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition, NotifyDefinition } from '../../../policies/definition.ts';
import { type GroupOverrides, group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ObjectsServer } from '../../kit/objects-server.ts';
import { withFields } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { virtualEnv } from '../../kit/virtual-env.ts';
import { callbackKey, commit, fakeCallback, fakeGitHub, fakeGitLab, fakeSlack, gitToken, slackChannel, slackToken } from './services.ts';

const agentNamespace = 'rollout-group';
const everything: NotifyDefinition['events'] = ['started', 'waiting', 'failed', 'completed'];

export const channelSpecs = {
  slack: { slack: { url: 'http://127.0.0.1:1/slack/api', token: { name: 'slack', key: 'token' }, channel: slackChannel } },
  callback: { callback: { url: 'http://127.0.0.1:1/callback', signingKey: { name: 'hook', key: 'key' } } },
  github: { github: { url: 'http://127.0.0.1:1/github', repository: 'acme/deploy', token: { name: 'git', key: 'token' } } },
  gitlab: { gitlab: { url: 'http://127.0.0.1:1/gitlab/api/v4', project: 'acme/deploy', token: { name: 'git', key: 'token' } } },
} as const;

export type ChannelName = keyof typeof channelSpecs;
type Moment = 'beforeSend' | 'afterReply';
export type Fault = (site: string, moment: Moment) => 'crash' | 'lose' | undefined;

interface Turning {
  /** Pods of each zone at the new revision. */
  readonly updated: readonly number[];
  readonly target?: string;
  /** What differs of single pods, by StatefulSet and ordinal. */
  readonly pods?: Readonly<Record<string, Readonly<Record<number, Partial<PodView>>>>>;
  readonly paused?: boolean;
  /** What else the run says. */
  readonly run?: Partial<RunState>;
}

export function notifyWorld(
  told: readonly ChannelName[],
  {
    replicas = 3,
    events = everything,
    overrides = {},
  }: { replicas?: number; events?: NotifyDefinition['events']; overrides?: GroupOverrides } = {},
) {
  const env = virtualEnv({ startMs: kitNowMs });
  const server = new ObjectsServer(env, ['secrets', 'notificationchannels']);
  const now = (): number => env.clock.nowMs();
  const services = { slack: fakeSlack(now), callback: fakeCallback(now), github: fakeGitHub(now), gitlab: fakeGitLab(now) };
  const notify = told.map((channel) => ({ channel, events }));
  const one = group({ zones: ['a', 'b'], notify, ...overrides });
  const secret = (name: string, data: Readonly<Record<string, string>>): void => {
    const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
    server.put('secrets', { metadata: { name, namespace: agentNamespace }, data: encoded });
  };
  const channel = (name: string, spec: object, namespaces = ['mimir']): void =>
    void server.put('notificationchannels.rollout-group.dev', {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'NotificationChannel',
      metadata: { name, namespace: agentNamespace },
      spec: { ...spec, usableFrom: { namespaces } },
    });
  secret('slack', { token: `${slackToken}\n` });
  secret('hook', { key: callbackKey });
  secret('git', { token: gitToken });
  for (const [name, spec] of Object.entries(channelSpecs)) channel(name, spec);

  let run: RunState | undefined;
  /** What a turn would see of the group now. */
  const report = ({ updated, target = 'new', pods = {}, paused = false, run: more = {} }: Turning): TurnReport => {
    const nowMs = now();
    const definition: GroupDefinition = paused ? { ...one, zones: one.zones.map((zone) => ({ ...zone, paused })) } : one;
    const ledger = { namespace: 'mimir', group: one.name, claims: [], downscales: [], preparations: [], ...(run && { run }) };
    const podChanges = Object.fromEntries(
      one.zones.map(({ statefulSet }, index) => [
        statefulSet,
        Object.fromEntries(
          Array.from({ length: replicas }, (_, ordinal) => [
            ordinal,
            { revision: ordinal < (updated[index] ?? 0) ? target : 'old', ...pods[statefulSet]?.[ordinal] },
          ]),
        ),
      ]),
    );
    const annotations = { 'rollout-group.dev/commit': commit };
    const snapshot: Snapshot = snapshotOf({
      nowMs,
      groups: [definition],
      ledgers: [ledger],
      podChanges,
      everySet: { replicas, annotations, status: { updateRevision: target } as never },
    });
    const decided = decideGroup(snapshot, definition);
    run = decided.run && withFields(decided.run, more);
    const decision = run === undefined ? decided : { ...decided, run };
    return { group: definition, snapshot, decision, performed: [], startedMs: nowMs, durationMs: 5 };
  };

  let latest: TurnReport | undefined;
  const processes: { readonly hear: (heard: TurnReport) => void }[] = [];
  /** A turn, heard by every process; those that do not lead take no notice. */
  const turn = async (turning: Turning, afterMs = 30_000): Promise<void> => {
    latest = report(turning);
    for (const process of processes) process.hear(latest);
    await env.advance(afterMs);
  };
  const call = async (request: NotifyRequest): Promise<HttpResponse> => {
    const { pathname, search } = new URL(request.url);
    const [, name = '', ...rest] = pathname.split('/');
    const headers = { 'user-agent': 'test', ...lowerCase(request.headers) };
    const asked = { method: request.method, path: `/${rest.join('/')}${search}`, headers, body: request.body ?? '' };
    await new Promise<void>((resolve) => void env.timers.after(50, resolve));
    const answer = services[name as ChannelName].answer(asked);
    return { status: answer.status, headers: lowerCase(answer.headers ?? {}), body: JSON.stringify(answer.body ?? {}) };
  };

  const results: string[] = [];
  const logs: string[] = [];
  const start = (identity: string, fault: Fault = () => undefined) => {
    let isAlive = true;
    const sites = new Set<string>();
    const forever = new Promise<never>(() => undefined);
    const pass = async (site: string, moment: Moment): Promise<void> => {
      if (!isAlive) return forever;
      sites.add(site);
      const what = fault(site, moment);
      if (what === 'crash') isAlive = false;
      if (what === 'crash') return forever;
      if (what === 'lose') throw new TransportFailure('the connection was reset', { site, mayBeApplied: moment === 'afterReply' });
    };
    const around = async <Result>(site: string, send: () => Promise<Result>): Promise<Result> => {
      await pass(site, 'beforeSend');
      const result = await send().catch((error: unknown) => (isAlive ? Promise.reject(error) : forever));
      await pass(site, 'afterReply');
      return result;
    };
    const say =
      (level: string) =>
      (message: string, fields: object = {}): void =>
        void logs.push(`${level} ${message} ${JSON.stringify(fields)}`);
    const agentEnv: AgentEnv = {
      clock: env.clock,
      random: env.random,
      timers: { after: (delayMs, callback) => env.timers.after(delayMs, () => void (isAlive && callback())) },
      kubernetes: { ...env.kubernetes, request: (request) => around(request.site, () => env.kubernetes.request(request)) },
      pods: { call: () => Promise.reject(new Error('no pods')) },
      log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
      notify: { call: (request) => around(request.site, () => call(request)) },
    };
    const notifier = new Notifier({
      env: agentEnv,
      config: { agentNamespace, identity, kubernetesTimeoutMs: 10_000, policySources: ['directory', 'objects', 'adopted'] },
      onResult: (channelName, result) => results.push(`${channelName} ${result}`),
    });
    const process = {
      notifier,
      sites,
      crash: () => {
        isAlive = false;
      },
      isAlive: () => isAlive,
      hear: (heard: TurnReport) => void (isAlive && notifier.listener.turnEnded(heard)),
      /** It leads from now on, and has its first turns at once. */
      lead: () => {
        notifier.listener.leadershipChanged?.({ isLeader: true });
        if (latest !== undefined) process.hear(latest);
      },
    };
    processes.push(process);
    return process;
  };
  const notesText = (): string => JSON.stringify(server.get('configmaps', 'mimir', 'rollout-notify-ingester') ?? {});
  return { env, server, services, group: one, turn, report, start, channel, secret, results, logs, notesText };
}

function lowerCase(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
