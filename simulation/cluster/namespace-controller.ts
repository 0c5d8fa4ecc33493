// Models the namespace controller, which deletes all objects of a namespace, one kind after the other.
import {
  configMapResource,
  exceptionResource,
  groupResource,
  intentResource,
  podResource,
  policyResource,
  statefulSetResource,
} from '../objects.ts';
import { between, type Random } from '../random.ts';
import type { Actor } from '../server/request.ts';
import { budgetResource, revisionResource } from './workload.ts';
import type { World } from './world.ts';

const actor: Actor = { user: 'system:serviceaccount:kube-system:namespace-controller' };

/** The kinds that a namespace with a group may have. */
const resources = [
  ...[podResource, statefulSetResource, revisionResource, budgetResource, configMapResource, groupResource, intentResource],
  ...[policyResource, exceptionResource, 'rolloutruns.rollout-group.dev', 'events.events.k8s.io'],
  ...['replicatemplates.rollout-operator.grafana.com', 'zoneawarepoddisruptionbudgets.rollout-operator.grafana.com'],
];

/** The range of the time until the controller deletes the objects of a kind. */
const delayMs = { from: 100, to: 20_000 };

/** Terminates the namespace. The order of the kinds is random. */
export function terminateNamespace({ server, scheduler }: Pick<World, 'server' | 'scheduler'>, namespace: string, random: Random): void {
  server.terminateNamespace(namespace);
  for (const resource of resources) {
    scheduler.after(between(random, delayMs.from, delayMs.to), () => {
      for (const { metadata } of server.list(resource, namespace)) {
        if (resource === podResource) server.terminate(actor, namespace, metadata.name);
        else server.remove(actor, { resource, namespace, name: metadata.name });
      }
    });
  }
}
