// Loses and finds the node of a namespace on the real control plane, whose node controllers act on it.
//
// A node is an object only while it is lost: so no test has to report for a kubelet in time while the machine is busy.
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from '../../../../simulation/server/request.ts';
import type { NodeState } from './step.ts';
import { nodeOf, type Side } from './workload.ts';

/** The flags of the node controllers: they notice a silent kubelet soon, and delete pods at any rate. */
export const nodeFlags = [
  '--node-monitor-period=200ms',
  '--node-monitor-grace-period=1s',
  '--node-eviction-rate=1000',
  '--secondary-node-eviction-rate=1000',
] as const;
export const nodeControllers = ['node-lifecycle-controller', 'taint-eviction-controller'] as const;

const taintKey = 'node.kubernetes.io/unreachable';
/** The number of looks for a taint, 50 ms apart. */
const lookCount = 200;

interface Taint extends Json {
  readonly key: string;
  readonly effect: string;
}

/** Changes the node of the namespace. */
export async function changeRealNode(ask: Side['ask'], namespace: string, state: NodeState): Promise<void> {
  const name = nodeOf(namespace);
  if (state === 'back') await ask({ method: 'DELETE', path: `/api/v1/nodes/${name}` });
  else if (state === 'lost') await ask({ method: 'POST', path: '/api/v1/nodes', body: JSON.stringify(silentNode(name)) });
  else await evictNow(ask, namespace, name);
}

/** Returns a node that was ready when its kubelet reported last. */
function silentNode(name: string): Json {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now, lastTransitionTime: now };
  // If every node was lost, the node controller would suspect itself and delete no pod.
  const labels = { 'node.kubernetes.io/exclude-disruption': 'true' };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status: { conditions: [ready] } };
}

/**
 * Ends the time for which pods tolerate that their node is unreachable. The taint eviction controller reads the new time only with a new
 * taint, so the test removes the taint, and the node lifecycle controller adds it again.
 */
async function evictNow(ask: Side['ask'], namespace: string, node: string): Promise<void> {
  await untilTainted(ask, node);
  const pods = await read<{ readonly items: readonly Pod[] }>(ask, `/api/v1/namespaces/${namespace}/pods`);
  for (const { metadata, spec } of pods?.items ?? []) {
    const tolerations = spec.tolerations.map((one) => (one['key'] === taintKey ? { ...one, tolerationSeconds: 0 } : one));
    await patch(ask, `/api/v1/namespaces/${namespace}/pods/${metadata.name}`, { spec: { tolerations } });
  }
  await patch(ask, `/api/v1/nodes/${node}`, { spec: { taints: null } });
  await untilTainted(ask, node);
}

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly tolerations: readonly Json[] };
}

async function untilTainted(ask: Side['ask'], node: string): Promise<void> {
  for (let look = 0; look < lookCount; look += 1) {
    const found = await read<{ readonly spec: { readonly taints?: readonly Taint[] } }>(ask, `/api/v1/nodes/${node}`);
    if (found?.spec.taints?.some(({ key, effect }) => key === taintKey && effect === 'NoExecute') === true) return;
    await delay(50);
  }
  throw new Error(`the node lifecycle controller did not taint ${node}`);
}

async function read<Value>(ask: Side['ask'], path: string): Promise<Value | undefined> {
  const { status, body } = await ask({ method: 'GET', path });
  return status === 200 ? (JSON.parse(body) as Value) : undefined;
}

async function patch(ask: Side['ask'], path: string, change: Json): Promise<void> {
  const { status, body } = await ask({ method: 'PATCH', path, contentType: 'application/merge-patch+json', body: JSON.stringify(change) });
  if (status !== 200) throw new Error(`PATCH ${path} is answered with ${status}: ${body}`);
}
