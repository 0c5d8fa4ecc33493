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
  readonly cluster: { readonly happen: (event: PeopleEvent | ClusterEvent) => boolean };
  readonly server: {
    readonly change: (actor: Actor, resource: string, namespace: string, name: string, patch: Json) => ModelObject | undefined;
    readonly remove: (actor: Actor, resource: string, namespace: string, name: string) => boolean;
    readonly lagFrontEnd: (frontEnd: number, untilMs: number) => void;
    readonly restartFrontEnd: (frontEnd: number, options: { readonly isCompacted: boolean }) => void;
  };
  /** How many the server has. */
  readonly frontEnds: number;
}

/** Does what the event says, or begins it. Answers whether there was anything to do it to. */
export function play(event: ScenarioEvent, { nowMs, wallMs, agents, cluster, server, frontEnds }: Stage): boolean {
  switch (event.kind) {
    case 'crash':
      return agents.crash(event.process, event.restartAfterMs);
    case 'stop':
      return agents.stop(event.process, event.restartAfterMs);
    case 'pauseProcess':
      return agents.pause(event.process, event.durationMs);
    case 'jumpWallClock':
      return agents.jumpWallClock(event.process, event.byMs);
    case 'deleteLease':
      return server.remove(stranger, leases, agentNamespace, leaseName);
    case 'editLease': {
      // As somebody does who knows the two fields that matter: leaseTransitions stays as it is.
      const renewTime = new Date(wallMs()).toISOString().replace('Z', '000Z');
      const spec = { holderIdentity: 'somebody-else', renewTime };
      return server.change(stranger, leases, agentNamespace, leaseName, { spec }) !== undefined;
    }
    case 'frontEndLags':
      server.lagFrontEnd(event.frontEnd % frontEnds, nowMs() + event.forMs);
      return true;
    case 'frontEndRestarts':
      server.restartFrontEnd(event.frontEnd % frontEnds, { isCompacted: event.isCompacted });
      return true;
    default:
      return cluster.happen(event);
  }
}

const ofObject = /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)\/namespaces\/([^/]+)\/([^/?]+)\/([^/?]+)/;

/** Changes the object that the request is about in a way that means nothing to anybody; Answers whether there is one. */
export function touchObject({ path }: Pick<ModelRequest, 'path'>, nth: number, server: Pick<Stage['server'], 'change'>): boolean {
  const [, group, namespace = '', plural = '', name = ''] = ofObject.exec(path) ?? [];
  if (name === '') return false;
  const resource = group === undefined ? plural : `${plural}.${group}`;
  const annotations = { 'example.com/looked-at': String(nth) };
  return server.change(stranger, resource, namespace, decodeURIComponent(name), { metadata: { annotations } }) !== undefined;
}
