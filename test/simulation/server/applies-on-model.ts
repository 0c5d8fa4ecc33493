// The model of the API server as a target of steps of server-side apply.
import type { Json, ModelObject } from '../../../simulation/server/request.ts';
import { type ApplyTarget, created } from './applies.ts';
import { asking } from './asking.ts';

const ref = { resource: 'statefulsets.apps', namespace: 'one', name: 's' };

/** Returns a model with the StatefulSet, and nothing that acts on it. */
export function modelOfApplies(): ApplyTarget {
  const { server } = asking();
  server.create({ user: 'jane' }, ref.resource, { ...created, metadata: { ...(created['metadata'] as Json), namespace: 'one' } });
  return {
    take: async (step) => {
      if ('patch' in step) server.change({ user: userOf(step.manager) }, ref, step.patch);
      else if (!server.apply({ user: 'git' }, ref, { object: step.apply, manager: step.manager, isForced: step.isForced })) return 409;
      return 200;
    },
    read: async () => server.get(ref.resource, ref.namespace, ref.name) as ModelObject,
  };
}

function userOf(manager: string): string {
  return manager === 'kubectl-edit' ? 'jane' : `system:serviceaccount:any:${manager}`;
}
