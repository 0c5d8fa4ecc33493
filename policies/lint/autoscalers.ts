// Autoscalers among the manifests, and what they scale.
import type { Manifest } from '../load.ts';
import { valueAt } from '../schema/schema-walk.ts';
import type { LintContext } from './context.ts';

/** Cached, because checks read the autoscalers for each zone of each group. */
const autoscalers: WeakMap<LintContext['load'], readonly Manifest[]> = new WeakMap();

/** Returns the HorizontalPodAutoscalers and KEDA ScaledObjects among the manifests. */
export function autoscalersOf({ load }: Pick<LintContext, 'load'>): readonly Manifest[] {
  const known = autoscalers.get(load);
  if (known !== undefined) return known;
  const found = load.manifests.filter(isAutoscaler);
  autoscalers.set(load, found);
  return found;
}

function isAutoscaler({ kind, apiVersion }: Manifest): boolean {
  const isKeda = kind === 'ScaledObject' && apiVersion.startsWith('keda.sh/');
  return isKeda || (kind === 'HorizontalPodAutoscaler' && apiVersion.startsWith('autoscaling/'));
}

/** Reports whether the autoscaler scales this object. A ScaledObject without a kind scales a Deployment. */
export function scales(autoscaler: Manifest, namespace: string, kind: 'StatefulSet' | 'RolloutGroup', name: string): boolean {
  const target = (field: string): unknown => valueAt(autoscaler.value, ['spec', 'scaleTargetRef', field]);
  return autoscaler.namespace === namespace && target('kind') === kind && target('name') === name;
}
