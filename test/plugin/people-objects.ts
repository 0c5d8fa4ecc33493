// The group of the tests with several people, and the Role of each person.
import type { Rule } from '../control-plane/roles.ts';

const namespace = 'mimir';
const ours = 'rollout-group.dev';
const apiVersion = `${ours}/v1alpha1`;

/** Everybody here may write intents: what counts is decided by who they are, and not by whether they may ask. */
export const operatorRules: readonly Rule[] = [
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: ['list'] },
  { apiGroups: [''], resources: ['configmaps', 'pods'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
  { apiGroups: ['rollout-operator.grafana.com'], resources: ['zoneawarepoddisruptionbudgets'], verbs: ['list', 'watch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['list'] },
  { apiGroups: [ours], resources: ['*'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
];

export const groupObject = {
  apiVersion,
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace },
  spec: {
    members: { zones: ['a', 'b', 'c'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
    rollout: {
      strategy: 'onDelete',
      rotateBy: 'delete',
      skipOnRollback: true,
      waves: [
        { name: 'canary', zones: ['a'], pods: 1, after: { soak: '1h' } },
        { name: 'rest', zones: ['a', 'b', 'c'], percent: 100, before: { approval: { count: 1, from: ['oncall'] } } },
      ],
    },
  },
};
