// Finds the other writers of an object: GitOps tools that would revert a change, and managers of its replicas.
import { toolOf } from '../../../engine/diff/field-writers.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { managedFields } from './managed-fields.ts';

/** A tool that manages an object from Git or from a release. */
interface GitOpsOwner {
  readonly tool: string;
  /** The application or release, if the object names it. */
  readonly of?: string;
  /** The evidence: a field manager, a label or an annotation. */
  readonly evidence: string;
  readonly ownsReplicas: boolean;
}

const marks: readonly (readonly [kind: 'labels' | 'annotations', key: string, tool: string])[] = [
  ['annotations', 'argocd.argoproj.io/tracking-id', 'Argo CD'],
  ['labels', 'argocd.argoproj.io/instance', 'Argo CD'],
  ['labels', 'kustomize.toolkit.fluxcd.io/name', 'Flux'],
  ['labels', 'helm.toolkit.fluxcd.io/name', 'Flux'],
  ['annotations', 'meta.helm.sh/release-name', 'Helm'],
  ['annotations', 'configmanagement.gke.io/managed', 'Config Sync'],
];

/** Returns the GitOps tool that owns a live object, from labels and annotations, else from field managers; undefined without one. */
export function gitOpsOwner(live: unknown): GitOpsOwner | undefined {
  const ownsReplicas = replicaOwners(live).some((name) => toolOf(name) !== undefined);
  for (const [kind, key, tool] of marks) {
    const value = fieldAt(live, ['metadata', kind, key]);
    if (typeof value !== 'string') continue;
    const of = key.endsWith('tracking-id') ? value.split(':')[0] : value;
    // The annotation of Config Sync names no object: its value is `enabled`.
    return {
      tool,
      ...(of === undefined || tool === 'Config Sync' ? {} : { of }),
      evidence: `${kind === 'labels' ? 'label' : 'annotation'} ${key}`,
      ownsReplicas,
    };
  }
  for (const { manager } of managedFields(live)) {
    const tool = toolOf(manager);
    if (tool !== undefined) return { tool, evidence: `field manager ${manager}`, ownsReplicas };
  }
  return undefined;
}

export function replicaOwners(live: unknown): readonly string[] {
  return managedFields(live)
    .filter(({ fields }) => fieldAt(fields, ['f:spec', 'f:replicas']) !== undefined)
    .map(({ manager }) => manager);
}
