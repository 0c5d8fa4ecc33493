// Reads from the audit log, to the microsecond, when pods of a rollout were deleted, gone, created and Ready.
import type { AuditEvent } from '../../test/control-plane/audit.ts';
import type { ControlPlane } from '../../test/control-plane/control-plane.ts';
import { isReady, type Pod } from '../../test/control-plane/workloads.ts';

/** Instants in milliseconds since 1970. */
export interface Replacement {
  readonly pod: string;
  /** The API server received the agent's request to delete or evict the pod. */
  readonly askedMs: number;
  /** The kubelet's last request about the old pod was answered. */
  readonly goneMs: number;
  /** The new pod was created. */
  readonly startedMs: number;
  /** The kubelet's report that the new pod is Ready was answered. Watches deliver it at about this time. */
  readonly readyMs: number;
}

/** Returns every replacement of a pod by the agent in the namespace, in the order of the requests. Throws if a replacement did not end. */
export async function replacementsIn({ auditLog, identities }: ControlPlane, namespace: string): Promise<readonly Replacement[]> {
  const events = (await auditLog()).filter((event) => event.objectRef?.namespace === namespace && event.objectRef.resource === 'pods');
  const done = events.filter(({ responseStatus }) => (responseStatus?.code ?? 500) < 300);
  const by = (user: string, verb: string, subresource?: string) =>
    done.filter((event) => event.user.username === user && event.verb === verb && event.objectRef?.subresource === subresource);
  const kubelet = identities.kubelet.user;
  const gone = by(kubelet, 'delete');
  const ready = by(kubelet, 'patch', 'status').filter((event) => isReady(podOf(event)));
  const created = done.filter(({ verb, objectRef }) => verb === 'create' && objectRef?.subresource === undefined);
  const agent = identities.agent.user;
  return [...by(agent, 'delete'), ...by(agent, 'create', 'eviction')]
    .map((event) => {
      const pod = event.objectRef?.name ?? '';
      const askedMs = instantMs(event.requestReceivedTimestamp);
      const next = (among: readonly AuditEvent[], afterMs: number, name: (event: AuditEvent) => string | undefined): number => {
        const found = among.map((one) => ({ name: name(one), atMs: instantMs(one.stageTimestamp) }));
        const first = found.find((one) => one.name === pod && one.atMs >= afterMs);
        if (first === undefined) throw new Error(`the audit log of ${namespace} does not tell the end of ${pod}`);
        return first.atMs;
      };
      const named = ({ objectRef }: AuditEvent): string | undefined => objectRef?.name;
      const goneMs = next(gone, askedMs, named);
      const startedMs = next(created, askedMs, (one) => podOf(one).metadata.name);
      return { pod, askedMs, goneMs, startedMs, readyMs: next(ready, startedMs, named) };
    })
    .sort((a, b) => a.askedMs - b.askedMs);
}

/** Returns an instant in milliseconds with microseconds as fraction, which `Date` does not parse. */
function instantMs(text: string): number {
  const [, fraction = ''] = /\.\d{3}(\d*)Z$/.exec(text) ?? [];
  return Date.parse(text) + Number(`0.${fraction || 0}`);
}

/** Returns the pod in the response of the server. */
function podOf({ responseObject }: AuditEvent): Pod {
  // The audit log contains the response to a successful request for a pod, which is a pod.
  return responseObject as Pod;
}
