// Finds the object of the GitOps tool that applied a StatefulSet, and the commit that this object names.
import { listOf } from '../../policies/values/list-of.ts';
import type { StatefulSetView } from '../snapshot.ts';
import { fieldAt } from './raw.ts';

/** An Application of Argo CD, or a Kustomization of Flux. */
interface Applier {
  readonly kind: 'Application' | 'Kustomization';
  readonly namespace: string;
  readonly name: string;
}

/** Returns the applier that the labels and annotations of a StatefulSet name; undefined without one. */
export function applierOf({ labels, annotations }: StatefulSetView, argoCdNamespace: string): Applier | undefined {
  const { 'kustomize.toolkit.fluxcd.io/name': name = '', 'kustomize.toolkit.fluxcd.io/namespace': namespace = '' } = labels;
  if (name !== '' && namespace !== '') return { kind: 'Kustomization', namespace, name };
  const tracked = annotations['argocd.argoproj.io/tracking-id']?.split(':')[0] || labels['argocd.argoproj.io/instance'] || '';
  // NAMESPACE_NAME is an Application outside the namespace of Argo CD.
  const [first = '', second] = tracked.split('_');
  if (first === '') return undefined;
  return second === undefined
    ? { kind: 'Application', namespace: argoCdNamespace, name: first }
    : { kind: 'Application', namespace: first, name: second };
}

/**
 * Returns the commit that the applier applied last, or applies now; undefined if it names none, as for a Helm chart. Also undefined if the
 * applier does not list the StatefulSet: labels can be copied.
 */
export function appliedCommit(applier: unknown, { namespace, name }: Pick<StatefulSetView, 'namespace' | 'name'>): string | undefined {
  const status = fieldAt(applier, ['status']);
  const entries = listOf(fieldAt(status, ['inventory', 'entries']));
  if (entries.some((entry) => fieldAt(entry, ['id']) === `${namespace}_${name}_apps_StatefulSet`)) {
    // The applied revision follows only after the health checks.
    return commitIn([fieldAt(status, ['lastAttemptedRevision'])]);
  }
  const isIt = (one: unknown): boolean =>
    fieldAt(one, ['kind']) === 'StatefulSet' && fieldAt(one, ['namespace']) === namespace && fieldAt(one, ['name']) === name;
  if (!listOf(fieldAt(status, ['resources'])).some(isIt)) return undefined;
  const operation = fieldAt(status, ['operationState']);
  // The result follows only after the first objects are applied.
  const isRunning = fieldAt(operation, ['phase']) === 'Running';
  const from = isRunning ? fieldAt(operation, ['operation', 'sync']) : fieldAt(operation, ['syncResult']);
  const compared = isRunning ? fieldAt(status, ['sync']) : undefined;
  return commitIn([from, compared].flatMap((one) => [fieldAt(one, ['revision']), ...listOf(fieldAt(one, ['revisions']))]));
}

/** Returns the first commit: `main@sha1:COMMIT` in Flux, or COMMIT. A chart version or the digest of an OCI artifact is no commit. */
function commitIn(revisions: readonly unknown[]): string | undefined {
  return revisions.map((one) => /^(?:.*@)?(?:sha1:)?([0-9a-f]{40})$/.exec(String(one))?.[1]).find((commit) => commit !== undefined);
}
