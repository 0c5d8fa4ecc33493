// Commands that change the cluster as others do: set-template, set-replicas, set-source, set-partition, annotate, label, strategy, unreadable, readable.
import type { StatefulSetView } from '../../../engine/snapshot.ts';
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { type Commands, count, word } from '../command.ts';
import { rawStatefulSet } from '../raw-statefulset.ts';
import { changeSnapshot, findZone, moveWorld, namespace, policiesNow, type Stage, statefulSetNamed } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const clusterCommands: Commands = {
  /** `set-template r2 zone=a`: the template of one zone, or of all. */
  'set-template': (stage, call) => {
    const revision = word(call, 0, 'the name of the new revision');
    for (const statefulSet of zonesOf(stage, call)) moveWorld(stage, { kind: 'setTemplate', namespace, statefulSet, revision });
    return [];
  },
  /** `set-replicas a 5`: written past the webhook. */
  'set-replicas': (stage, call) => {
    const { statefulSet } = findZone(stage, word(call, 0, 'a zone')).zone;
    moveWorld(stage, { kind: 'setReplicas', namespace, statefulSet, replicas: count(call, 1, 'replicas') });
    return [];
  },
  /** `set-partition a 0`: written by hand. */
  'set-partition': (stage, call) => {
    const { name: zone, statefulSet } = findZone(stage, word(call, 0, 'a zone')).zone;
    const set = stage.world.snapshot.statefulSets.find(({ name }) => name === statefulSet);
    if (set === undefined) throw new Error(`there is no StatefulSet ${statefulSet}`);
    const { uid, resourceVersion, partition: from } = set;
    const to = count(call, 1, 'a partition');
    const action = {
      kind: 'setPartition',
      namespace,
      zone,
      statefulSet,
      uid,
      resourceVersion,
      from,
      to,
      because: 'outdated',
      pods: [],
    } as const;
    moveWorld(stage, { kind: 'action', action });
    return [];
  },
  /** `set-source ReplicaTemplate/ingester 5`: what is mirrored. */
  'set-source': (stage, call) => {
    const [kind = '', name = ''] = word(call, 0, 'kind/name').split('/');
    const value = word(call, 1, 'replicas, unreadable or gone');
    const { replicaSources } = stage.world.snapshot;
    const known = replicaSources.find((source) => source.kind === kind && source.name === name);
    const others = replicaSources.filter((source) => source !== known);
    if (value === 'gone') {
      changeSnapshot(stage, { replicaSources: others });
      return [];
    }
    const replicas = value === 'unreadable' ? { unknown: 'the server answered 500' } : Number(value);
    const apiVersion = known?.apiVersion ?? 'rollout-operator.grafana.com/v1';
    changeSnapshot(stage, { replicaSources: [...others, { ...known, namespace, apiVersion, kind, name, replicas }] });
    return [];
  },
  /** `annotate b grafana.com/rollout-paused=true`; an empty value is a value, `key-` removes. */
  annotate: (stage, call) => changeMetadata(stage, call, 'annotations'),
  label: (stage, call) => changeMetadata(stage, call, 'labels'),
  /** `strategy b RollingUpdate`. */
  strategy: (stage, call) => {
    const { statefulSet } = findZone(stage, word(call, 0, 'a zone')).zone;
    const updateStrategy: StatefulSetView['updateStrategy'] = word(call, 1, 'a strategy') === 'OnDelete' ? 'OnDelete' : 'RollingUpdate';
    const statefulSets = stage.world.snapshot.statefulSets.map((set) => (set.name === statefulSet ? { ...set, updateStrategy } : set));
    changeSnapshot(stage, { statefulSets });
    return [];
  },
  /** `unreadable b`, `unreadable intents`, `unreadable budgets`: the observer gets no answer. */
  unreadable: (stage, call) => {
    stage.unreadable.set(partNamed(stage, word(call, 0, 'a zone or a part')), 'the server did not answer');
    return [];
  },
  readable: (stage, call) => {
    stage.unreadable.delete(partNamed(stage, word(call, 0, 'a zone or a part')));
    return [];
  },
  /** `gone b`: the StatefulSet is deleted; `readable b` brings it back. */
  gone: (stage, call) => {
    stage.unreadable.set(findZone(stage, word(call, 0, 'a zone')).zone.statefulSet, 'gone');
    return [];
  },
  /** `stale-status b` and `fresh-status b`: whether the controller has seen the spec. */
  'stale-status': (stage, call) => {
    stage.staleStatus.add(findZone(stage, word(call, 0, 'a zone')).zone.statefulSet);
    return [];
  },
  'fresh-status': (stage, call) => {
    stage.staleStatus.delete(findZone(stage, word(call, 0, 'a zone')).zone.statefulSet);
    return [];
  },
};

function zonesOf(stage: Stage, call: Call): readonly string[] {
  const named = call.options['zone'];
  if (named !== undefined) return named.split(',').map((zone) => findZone(stage, zone).zone.statefulSet);
  return policiesNow(stage).groups.flatMap(({ zones }) => zones.map(({ statefulSet }) => statefulSet));
}

function partNamed(stage: Stage, name: string): string {
  return name === 'intents' || name === 'budgets' ? name : findZone(stage, name).zone.statefulSet;
}

function changeMetadata(stage: Stage, call: Call, field: 'annotations' | 'labels'): readonly string[] {
  const statefulSet = statefulSetNamed(stage, word(call, 0, 'a zone'));
  const removed = call.words.slice(1).map((key) => key.replace(/-$/, ''));
  const statefulSets = stage.world.snapshot.statefulSets.map((set) => {
    if (set.name !== statefulSet) return set;
    const kept = Object.entries({ ...set[field], ...call.options }).filter(([key]) => !removed.includes(key));
    return { ...set, [field]: Object.fromEntries(kept) };
  });
  changeSnapshot(stage, { statefulSets });
  const { findings } = adoptGroups(statefulSets.map(rawStatefulSet));
  return findings
    .filter(({ object, field: key }) => object.endsWith(`/${statefulSet}`) && key in call.options)
    .map(({ message }) => `finding: ${message}`);
}
