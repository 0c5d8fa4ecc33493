// Who else writes an object: the field managers that the API server recorded, and the tools that keep objects as Git has them.
import { fieldAt, instantMs } from '../../../engine/observe/raw.ts';

/** A tool that puts an object back to what Git says. */
interface GitOpsOwner {
  /** Such as Argo CD. */
  readonly tool: string;
  /** The application or release, where the object names it. */
  readonly of?: string;
  /** What shows it: a field manager, a label or an annotation. */
  readonly evidence: string;
  /** Whether it names the number of replicas. */
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

/** The GitOps tool that owns a live object, by its marks first and then by who wrote its fields; undefined when there is none. */
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

/** The managers that own `spec.replicas`, in the order of the object. */
export function replicaOwners(live: unknown): readonly string[] {
  return managedFields(live)
    .filter(({ fields }) => fieldAt(fields, ['f:spec', 'f:replicas']) !== undefined)
    .map(({ manager }) => manager);
}

/** When a manager last wrote the object; milliseconds. */
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
    // What a controller writes into the status says nothing about who wants the object to be as it is.
    if (typeof manager !== 'string' || fieldAt(entry, ['subresource']) === 'status') return [];
    const time = fieldAt(entry, ['time']);
    const timeMs = typeof time === 'string' ? instantMs(time) : undefined;
    return [{ manager, fields: fieldAt(entry, ['fieldsV1']), ...(timeMs === undefined ? {} : { timeMs }) }];
  });
}

function toolOf(manager: string): string | undefined {
  return managers.find(([pattern]) => pattern.test(manager))?.[1];
}
