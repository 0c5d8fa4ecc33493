// A StatefulSet of the model as the JSON that adoption reads.
import type { StatefulSetView } from '../../engine/snapshot.ts';

export function rawStatefulSet(set: StatefulSetView): unknown {
  const { namespace, name, labels, annotations, replicas, serviceName, podLabels } = set;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { namespace, name, labels, annotations },
    spec: { replicas, serviceName, updateStrategy: { type: set.updateStrategy }, template: { metadata: { labels: podLabels } } },
  };
}
