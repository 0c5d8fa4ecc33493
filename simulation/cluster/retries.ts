// Models people who react to a request for help: after all repairs they `retry` pods that came back without the webhook as often as the
// agent tries.
import type { Actor, Json } from '../server/request.ts';
import { instantText } from './workload.ts';
import type { ClusterApi, World } from './world.ts';

interface RetriesOptions extends Pick<World, 'server' | 'scheduler' | 'wallMs'> {
  readonly namespace: string;
  readonly group: string;
  readonly told: (what: string) => void;
}

const actor: Actor = { user: 'kubernetes-admin' };
const intentResource = 'rolloutintents.rollout-group.dev';
/** Between two checks, and until the same pods are handled again. */
const lookEveryMs = 20_000;
const patienceMs = 120_000;
/** Attempts after which the agent asks for help. */
const mostTries = 2;

interface Pinned {
  readonly zone: string;
  readonly ordinal?: number;
  readonly revision: string;
  readonly placements?: number;
}

/** Checks the ledger from now on. */
export function startRetries({ server, scheduler, wallMs, namespace, group, told }: RetriesOptions): void {
  let count = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  let lastText = '';
  const look = (): void => {
    scheduler.after(lookEveryMs, look);
    const { pins = [], run } = ledgerOf(server, namespace, group);
    const waiting = pins.filter(({ placements = 0 }) => placements >= mostTries).map(({ zone, ordinal }) => `${zone}-${ordinal}`);
    const text = waiting.join(', ');
    if (run === undefined || text === '' || (text === lastText && scheduler.nowMs() - lastMs < patienceMs)) return;
    // Earlier requests no longer count.
    if (count > 0) server.remove(actor, intentResource, namespace, `retry-${group}-${count}`);
    count += 1;
    lastMs = scheduler.nowMs();
    lastText = text;
    told(`retry ${text}`);
    const requestedBy = { user: actor.user, groups: [], at: instantText(wallMs()) };
    server.create(actor, intentResource, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutIntent',
      metadata: { name: `retry-${group}-${count}`, namespace },
      spec: { group, action: 'retry', runId: run.id, reason: 'the webhook is back', requestedBy },
    });
  };
  look();
}

function ledgerOf(
  server: ClusterApi,
  namespace: string,
  group: string,
): { readonly pins?: readonly Pinned[]; readonly run?: { readonly id: string } } {
  const map = server.get('configmaps', namespace, `rollout-group-${group}`) as { readonly data?: Json } | undefined;
  const text = map?.data?.['ledger'];
  return typeof text === 'string' ? JSON.parse(text) : {};
}
