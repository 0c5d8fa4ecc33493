// Other writers of an object: its field managers, and GitOps tools.
import { fieldAt, instantMs } from '../../../engine/observe/raw.ts';

/** A tool that reverts an object to its state in Git. */
interface GitOpsOwner {
  /** Such as Argo CD. */
  readonly tool: string;
  /** The application or release, where the object names it. */
  readonly of?: string;
  /** The evidence: a field manager, a label or an annotation. */
  readonly evidence: string;
  /** The tool owns `spec.replicas`. */
  readonly ownsReplicas: boolean;
}

const managers: readonly (readonly [RegExp, string])[] = [
  [/^argocd-(?:application-)?controller$|^argocd-server$|^argocd$/, 'Argo CD'],
  [/^kustomize-controller$/, 'Flux'],
  [/^helm-controller$/, 'Flux'],
  [/^flux(?:$|-)/, 'Flux'],
  [/^helm$/, 'Helm'],
  [/^(?:config-sync|configsync|applier-manager)/, 'Config Sync'],
  [/^fleet(?:agent|-agent)/, 'Fleet'],
];

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
    const of = key.endsWith('tracking-id') ? (value.split(':')[0] ?? value) : value;
    return { tool, of, evidence: `${kind === 'labels' ? 'label' : 'annotation'} ${key}`, ownsReplicas };
  }
  for (const { manager } of managedFields(live)) {
    const tool = toolOf(manager);
    if (tool !== undefined) return { tool, evidence: `field manager ${manager}`, ownsReplicas };
  }
  return undefined;
}

/** Returns the managers that own `spec.replicas`, in the order of the object. */
export function replicaOwners(live: unknown): readonly string[] {
  return managedFields(live)
    .filter(({ fields }) => fieldAt(fields, ['f:spec', 'f:replicas']) !== undefined)
    .map(({ manager }) => manager);
}

/** Returns when a manager last wrote the object, in milliseconds. */
export function lastWriteMs(live: unknown, manager: string): number | undefined {
  const times = managedFields(live).flatMap((entry) => (entry.manager === manager && entry.timeMs !== undefined ? [entry.timeMs] : []));
  return times.length === 0 ? undefined : Math.max(...times);
}

interface ManagedFields {
  readonly manager: string;
  readonly fields: unknown;
  readonly timeMs?: number;
}

function managedFields(live: unknown): readonly ManagedFields[] {
  const list = fieldAt(live, ['metadata', 'managedFields']);
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry): readonly ManagedFields[] => {
    const manager = fieldAt(entry, ['manager']);
    // A writer of only the status does not own the spec.
    if (typeof manager !== 'string' || fieldAt(entry, ['subresource']) === 'status') return [];
    const time = fieldAt(entry, ['time']);
    const timeMs = typeof time === 'string' ? instantMs(time) : undefined;
    return [{ manager, fields: fieldAt(entry, ['fieldsV1']), ...(timeMs === undefined ? {} : { timeMs }) }];
  });
}

function toolOf(manager: string): string | undefined {
  return managers.find(([pattern]) => pattern.test(manager))?.[1];
}
