// Steps of server-side apply, which the model and the real API server must answer alike.
import type { Json, ModelObject } from '../../../simulation/server/request.ts';
import { asking } from './asking.ts';

/** An apply of a manifest by a tool, or a merge patch by a program. */
export type Step =
  | { readonly apply: Json; readonly manager: string; readonly isForced: boolean }
  | { readonly patch: Json; readonly manager: string };

const container = { name: 'app', image: 'app:1' };

export const manifest = (spec: Json): Json => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 's', labels: { team: 'x' } },
  spec,
});

const template = (image: string): Json => ({
  metadata: { labels: { name: 's' } },
  spec: { containers: [{ ...container, image }] },
});

/** The StatefulSet before the first step. */
export const created: Json = manifest({
  replicas: 3,
  serviceName: 's',
  updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 5 } },
  selector: { matchLabels: { name: 's' } },
  template: template('app:1'),
});

const git = (spec: Json, isForced = true): Step => ({ apply: manifest(spec), manager: 'argocd-controller', isForced });
const edit = (patch: Json, manager = 'kubectl-edit'): Step => ({ patch, manager });
const partition = (value: number): Json => ({ updateStrategy: { rollingUpdate: { partition: value } } });

/** Sequences of steps by the fact that they show. */
export const sequences: Readonly<Record<string, readonly Step[]>> = {
  'an apply without a change of values, twice': [
    git({ replicas: 3, template: template('app:1') }),
    git({ replicas: 3, template: template('app:1') }),
  ],
  'a write of another manager, and a forced apply that resets it': [
    git({ replicas: 3 }),
    edit({ spec: { replicas: 5 } }, 'rollout-group-agent'),
    git({ replicas: 3 }, false),
    git({ replicas: 3 }),
  ],
  'an apply that leaves out a field of another manager': [
    git({ template: template('app:1') }),
    edit({ spec: partition(2) }, 'rollout-group-agent'),
    git({ template: template('app:2') }, false),
  ],
  'an apply that leaves out a field that it owned alone': [
    git({ template: template('app:1') }),
    edit({ spec: { replicas: 4 } }),
    git({ replicas: 5, template: template('app:1') }),
    git({ template: template('app:1') }),
  ],
  'an image that kubectl sets and the tool resets': [
    git({ template: template('app:2') }),
    edit({ spec: { template: { spec: { containers: [{ ...container, image: 'app:3' }] } } } }),
    git({ template: template('app:2') }, false),
    git({ template: template('app:2') }),
  ],
  'an annotation of a restart, which no manifest has': [
    git({ template: template('app:1') }),
    edit({ spec: { template: { metadata: { annotations: { restartedAt: 'now' } } } } }),
    git({ template: template('app:2') }, false),
  ],
  'the same value by two managers': [
    git({ replicas: 4 }),
    { apply: manifest({ replicas: 4 }), manager: 'kustomize-controller', isForced: false },
    edit({ spec: { replicas: 6 } }, 'rollout-group-agent'),
    { apply: manifest({ replicas: 4 }), manager: 'kustomize-controller', isForced: true },
  ],
};

/** A server with the StatefulSet `s`. */
export interface ApplyTarget {
  /** Sends the step. Returns the HTTP status. */
  readonly take: (step: Step) => Promise<number>;
  readonly read: () => Promise<Json>;
}

/** Returns the answers to the steps: the status, whether the object changed, its values and the owners of its fields. */
export async function played(target: ApplyTarget, steps: readonly Step[]): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  for (const step of steps) {
    const before = contentOf(await target.read());
    const status = await target.take(step);
    const after = await target.read();
    answers.push({ status, isChanged: contentOf(after) !== before, ...valuesOf(after), owners: ownersOf(after) });
  }
  return answers;
}

/** Returns the spec and its owners as a text. The controllers of a real cluster also write the status. */
function contentOf(object: Json): string {
  return JSON.stringify([object['spec'], ownersOf(object)]);
}

function valuesOf({ spec }: Json) {
  const {
    replicas,
    updateStrategy,
    template: pods,
  } = spec as Json & { readonly template: { readonly metadata: Json; readonly spec: Json } };
  const { rollingUpdate } = updateStrategy as { readonly rollingUpdate?: Json };
  const [{ image } = { image: undefined }] = pods.spec['containers'] as readonly { readonly image: string }[];
  return { replicas, partition: rollingUpdate?.['partition'], image, annotations: pods.metadata['annotations'] };
}

/** Returns the owned fields of each manager: the replicas, the partition, the images and the labels and annotations of the pods. */
function ownersOf({ metadata }: Json): readonly string[] {
  const entries = ((metadata as Json)['managedFields'] ?? []) as readonly {
    readonly manager: string;
    readonly operation: string;
    readonly subresource?: string;
    readonly fieldsV1: Json;
  }[];
  return entries
    .filter(({ subresource }) => subresource === undefined)
    .map(({ manager, operation, fieldsV1 }) => {
      const fields = pathsOf(fieldsV1).filter((path) => /replicas|partition|f:image$|f:annotations|f:labels/.test(path));
      return `${manager} ${operation}: ${fields.sort().join(' ')}`;
    })
    .sort();
}

function pathsOf(tree: Json, path = ''): readonly string[] {
  return Object.entries(tree).flatMap(([key, inner]) => {
    if (key === '.') return [];
    const own = path === '' ? key : `${path}/${key}`;
    return Object.keys(inner as Json).length === 0 ? [own] : pathsOf(inner as Json, own);
  });
}

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
