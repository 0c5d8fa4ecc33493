// What happens in a run because its scenario says so, whoever it happens to: the group, the agents, their Lease or the API server.
import { type Agents, agentNamespace, leaseName } from './process/agents.ts';
import type { ClusterEvent, PeopleEvent, ScenarioEvent } from './scenario.ts';
import type { Actor, Json, ModelObject, ModelRequest } from './server/request.ts';

const leases = 'leases.coordination.k8s.io';

/** Somebody who is neither an agent nor a controller. */
const stranger: Actor = { user: 'somebody-else' };

export interface Stage {
  readonly nowMs: () => number;
  /** The right time, in milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly agents: Pick<Agents, 'crash' | 'stop' | 'pause' | 'jumpWallClock'>;
  readonly cluster: { readonly happen: (event: PeopleEvent | ClusterEvent) => void };
  readonly server: {
    readonly change: (actor: Actor, resource: string, namespace: string, name: string, patch: Json) => ModelObject | undefined;
    readonly remove: (actor: Actor, resource: string, namespace: string, name: string) => boolean;
    readonly lagFrontEnd: (frontEnd: number, untilMs: number) => void;
    readonly restartFrontEnd: (frontEnd: number, options: { readonly isCompacted: boolean }) => void;
  };
  /** How many the server has. */
  readonly frontEnds: number;
}

/** Does what the event says, or begins it. */
export function play(event: ScenarioEvent, { nowMs, wallMs, agents, cluster, server, frontEnds }: Stage): void {
  switch (event.kind) {
    case 'crash':
      agents.crash(event.process, event.restartAfterMs);
      return;
    case 'stop':
      agents.stop(event.process, event.restartAfterMs);
      return;
    case 'pauseProcess':
      agents.pause(event.process, event.durationMs);
      return;
    case 'jumpWallClock':
      agents.jumpWallClock(event.process, event.byMs);
      return;
    case 'deleteLease':
      server.remove(stranger, leases, agentNamespace, leaseName);
      return;
    case 'editLease': {
      // As somebody does who knows the two fields that matter: leaseTransitions stays as it is.
      const renewTime = new Date(wallMs()).toISOString().replace('Z', '000Z');
      server.change(stranger, leases, agentNamespace, leaseName, { spec: { holderIdentity: 'somebody-else', renewTime } });
      return;
    }
    case 'frontEndLags':
      server.lagFrontEnd(event.frontEnd % frontEnds, nowMs() + event.forMs);
      return;
    case 'frontEndRestarts':
      server.restartFrontEnd(event.frontEnd % frontEnds, { isCompacted: event.isCompacted });
      return;
    default:
      cluster.happen(event);
  }
}

const ofObject = /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)\/namespaces\/([^/]+)\/([^/?]+)\/([^/?]+)/;

/** Changes the object that the request is about in a way that means nothing to anybody; nothing when it is about none. */
export function touchObject({ path }: Pick<ModelRequest, 'path'>, nth: number, server: Pick<Stage['server'], 'change'>): void {
  const [, group, namespace = '', plural = '', name = ''] = ofObject.exec(path) ?? [];
  if (name === '') return;
  const resource = group === undefined ? plural : `${plural}.${group}`;
  const annotations = { 'example.com/looked-at': String(nth) };
  server.change(stranger, resource, namespace, decodeURIComponent(name), { metadata: { annotations } });
}
