// Distinguishes a restart from other changes of a pod template: a new template, and the return to an earlier template.
import { instantMs } from '../../policies/instant.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import type { GroupContext } from '../context.ts';
import type { AdmissionRequest } from '../decision.ts';
import { fieldAt } from '../observe/raw.ts';
import type { ZoneView } from '../observe/view.ts';
import { undoRequest } from '../run/requests.ts';

type Restart = Extract<AdmissionRequest, { readonly kind: 'restart' }>;

/** The annotation that `kubectl rollout restart` sets in the template, to the present time. */
const restartedAt = 'kubectl.kubernetes.io/restartedAt';

/**
 * Returns the time that a restart writes; undefined if the change is no restart. In a restart, only this time differs between the templates. A
 * write that removes the time is an apply by a GitOps tool. A write that sets an earlier time is the return to an earlier template.
 */
export function restartOf(template: unknown, before: unknown): Pick<Restart, 'restartedAtMs'> | undefined {
  const [text, known] = [restartText(template), restartText(before)];
  if (text === undefined || text === known || !differInRestartAlone(template, before)) return undefined;
  const [atMs, knownMs] = [instantMs(text), known === undefined ? undefined : instantMs(known)];
  if (atMs !== undefined && knownMs !== undefined && atMs <= knownMs) return undefined;
  return defined({ restartedAtMs: atMs });
}

/** Reports whether two templates are equal except for the time of a restart. No manifest contains this time. */
export function differInRestartAlone(template: unknown, before: unknown): boolean {
  return isSameValue(withoutRestart(template), withoutRestart(before));
}

/**
 * Reports whether the write returns to a template that is older than the present one. Then its time is not later than the start of the run that
 * rolls out the present template, or than the undo of the present revision.
 */
export function isReturn(context: GroupContext, { zone, set }: ZoneView, { restartedAtMs }: Pick<Restart, 'restartedAtMs'>): boolean {
  const undo = undoRequest(context, zone.name, set?.status.updateRevision);
  const known = [context.view.ledger.run?.startedMs, undo?.requestedBy?.atMs];
  return restartedAtMs !== undefined && known.some((atMs) => atMs !== undefined && restartedAtMs <= atMs);
}

function restartText(template: unknown): string | undefined {
  const text = fieldAt(template, ['metadata', 'annotations', restartedAt]);
  return text === undefined || text === null ? undefined : String(text);
}

function withoutRestart(template: unknown): unknown {
  const { metadata, ...rest } = Object(template);
  const { annotations, ...kept } = Object(metadata);
  const { [restartedAt]: _restartedAt, ...others } = Object(annotations);
  return { ...rest, metadata: Object.keys(others).length === 0 ? kept : { ...kept, annotations: others } };
}
