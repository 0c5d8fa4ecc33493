// Rows 36 to 41 of what rollouts can do: zones and pods that an operator makes from a template, which is out of scope.

interface RowBeyond {
  readonly id: number;
  readonly what: string;
  readonly why: string;
}

const templates = 'StatefulSets, and what is in their pods, come from manifests: no group makes zones from a template.';

export const rowsBeyond: readonly RowBeyond[] = [
  { id: 36, what: 'zones as StatefulSets of their own, with affinity and environment', why: templates },
  {
    id: 37,
    what: 'zones one after the other',
    why: 'This is what a group is; every suite about rollouts of several zones shows it, such as test/agent/rollout.cluster.ts.',
  },
  { id: 38, what: 'two versions side by side until the new one runs', why: templates },
  {
    id: 39,
    what: 'an upgrade although pods are not ready',
    why: 'Cures of stuck pods are row 28; to pass everything else by takes an exception.',
  },
  {
    id: 40,
    what: 'a restart when a ConfigMap or a Secret changes',
    why: 'Whoever renders the manifests puts a digest of the configuration into the template, which is then rolled like any other.',
  },
  { id: 41, what: 'numbers of replicas and zones in the environment of pods', why: templates },
];
