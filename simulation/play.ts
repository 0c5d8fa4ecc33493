// Performs the events of a scenario on the group, the agents, their Lease or the API server.
import { type Agents, agentNamespace, leaseName } from './process/agents.ts';
import type { ClusterEvent, PeopleEvent, ScenarioEvent } from './scenario.ts';
import type { Actor, Json, ModelObject, ModelRequest } from './server/request.ts';

const leases = 'leases.coordination.k8s.io';

/** A user who is neither an agent nor a controller. */
const stranger: Actor = { user: 'another-user' };

export interface Stage {
  readonly nowMs: () => number;
  /** True time, in milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly agents: Pick<Agents, 'crash' | 'stop' | 'pause' | 'jumpWallClock'>;
  readonly cluster: { readonly happen: (event: PeopleEvent | ClusterEvent) => boolean };
  readonly server: {
    readonly change: (actor: Actor, resource: string, namespace: string, name: string, patch: Json) => ModelObject | undefined;
    readonly remove: (actor: Actor, resource: string, namespace: string, name: string) => boolean;
    readonly lagFrontEnd: (frontEnd: number, untilMs: number) => void;
    readonly restartFrontEnd: (frontEnd: number, options: { readonly isCompacted: boolean }) => void;
  };
  /** Number of front ends of the server. */
  readonly frontEnds: number;
}

/** Performs or begins the event. Returns whether it had a target. */
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
      // Writes the two relevant fields as a person does: leaseTransitions stays.
      const renewTime = new Date(wallMs()).toISOString().replace('Z', '000Z');
      const spec = { holderIdentity: 'another-holder', renewTime };
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

/** Changes the object of the request in an irrelevant way. Returns whether it exists. */
export function touchObject({ path }: Pick<ModelRequest, 'path'>, nth: number, server: Pick<Stage['server'], 'change'>): boolean {
  const [, group, namespace = '', plural = '', name = ''] = ofObject.exec(path) ?? [];
  if (name === '') return false;
  const resource = group === undefined ? plural : `${plural}.${group}`;
  const annotations = { 'example.com/looked-at': String(nth) };
  return server.change(stranger, resource, namespace, decodeURIComponent(name), { metadata: { annotations } }) !== undefined;
}
