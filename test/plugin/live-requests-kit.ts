// The verbs that say a word about a run, asked of a group that an agent has published: what is written, and what is said.
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type Asked, type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, type InProcess, runInProcess } from './in-process.ts';
import { rolling, waiting } from './live-kit.ts';
import { adoptedObjects, publishedObject } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';

export interface Acted extends Ended {
  readonly writes: readonly Asked[];
  /** Writes that are no dry runs. */
  readonly kept: readonly Asked[];
  readonly objects: readonly FakeObject[];
}

interface Circumstances extends InProcess {
  readonly decision?: PublishedDecision;
  readonly extra?: readonly FakeObject[];
  readonly options?: FakeOptions;
  /** False if the definition of the group is in the policy files of the agent, which the plugin cannot read. */
  readonly isDefined?: boolean;
}

export const oncall = { user: 'anna', groups: ['oncall'] };

export const apiVersion = 'rollout-group.dev/v1alpha1';
export const zones = ['a', 'b', 'c'] as const;
const now = (decision: PublishedDecision): PublishedDecision => ({ ...decision, decidedMs: Date.now() });
export const runOf = ({ run }: PublishedDecision): NonNullable<PublishedDecision['run']> => {
  if (run === undefined) throw new Error('the test expected a run');
  return run;
};

/** The object of the group behind the published decision, with waves, gates and an approval. */
export const groupObject: FakeObject = {
  apiVersion,
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace: 'mimir' },
  spec: {
    members: { zones: zones.map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
    gates: [{ name: 'errors', prometheus: { source: 'prod', query: 'errors' }, pass: { '<=': [{ var: 'value' }, 0.5] } }],
    rollout: {
      strategy: 'onDelete',
      waves: [
        { name: 'canary', zones: ['a'], pods: 1, after: { soak: '30m', gates: ['errors'] } },
        { name: 'zone-a', zones: ['a'], percent: 100 },
        { name: 'rest', zones: ['b', 'c'], percent: 100, before: { approval: { count: 2, from: ['oncall'] } } },
      ],
    },
  },
};

export async function act(
  line: string,
  { decision = waiting, extra = [], options = { stamp: oncall }, isDefined = true, ...rest }: Circumstances = {},
): Promise<Acted> {
  const objects = [
    ...(isDefined ? [groupObject] : []),
    ...adoptedObjects({ updateRevision: 'rev-2' }),
    publishedObject(now(decision)),
    ...extra,
  ];
  const server = await fakeApiServer(objects, options);
  const words = [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
  const ended = await runInProcess([...words, '--server', server.url, '-n', 'mimir'], rest);
  const kept = server.writes.filter(({ path }) => !path.includes('dryRun=All'));
  return { ...ended, writes: server.writes, kept, objects: server.objects() };
}

/** What was written of intents and exceptions. */
export function asked({ kept }: Acted): readonly unknown[] {
  return kept.filter(({ path }) => /rollout(intents|exceptions)/.test(path)).map(({ body }) => Object(body).spec);
}

/** The run is in its first wave. */
export const inCanary: PublishedDecision = {
  ...rolling,
  wave: { name: 'canary', index: 0, count: 3 },
  run: { ...runOf(rolling), wave: 0 },
};
export const failed: PublishedDecision = {
  ...rolling,
  phase: 'Failed',
  run: { ...runOf(rolling), outcome: 'failed', failure: 'no pod became available for 5m', failedMs: 1000 },
};
export const over: PublishedDecision = { ...rolling, run: { ...runOf(rolling), outcome: 'completed' } };

/** One object for all members: names of revisions are the same in every zone here. */
const revision = (name: string, number: number, image: string): FakeObject => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: {
    name,
    namespace: 'mimir',
    ownerReferences: zones
      .map((zone) => `ingester-zone-${zone}`)
      .map((owner) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', name: owner, uid: `uid-${owner}` })),
  },
  revision: number,
  data: {
    spec: {
      template: {
        $patch: 'replace',
        metadata: { labels: { 'rollout-group': 'ingester' } },
        spec: { containers: [{ name: 'ingester', image }] },
      },
    },
  },
});
export const history = [revision('rev-0', 1, 'mimir:0'), revision('rev-1', 2, 'mimir:1'), revision('rev-2', 3, 'mimir:2')];
