// What the acting verbs have in common: where a dry run ends, what it prints, and who is told why.
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject } from '../../cluster/request/write.ts';
import type { Access, Cluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { usageFailure } from '../failure.ts';
import { toYaml } from '../output/yaml.ts';
import type { LiveGroup } from './groups.ts';

export type DryRun = 'client' | 'server' | undefined;

/** A dry run goes through a door that lets nothing else through. */
export function accessFor(dryRun: DryRun): Access {
  return dryRun === undefined ? 'write' : 'read';
}

/** The objects that would be sent, or that the API server would have kept, as a stream of YAML documents. */
export function printObjects({ stdout }: CommandContext, objects: readonly KubernetesObject[]): void {
  stdout.write(objects.map((object) => `---\n${toYaml(withoutManagedFields(object))}`).join(''));
}

function withoutManagedFields(object: KubernetesObject): KubernetesObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** The zone that is meant, or undefined for all. @throws Failure when the group has none of that name. */
export function zoneNamed({ decision }: LiveGroup, zone: string | undefined): string | undefined {
  if (zone === undefined) return undefined;
  const found = decision.zones.find((candidate) => candidate.zone === zone || candidate.statefulSet === zone);
  if (found !== undefined) return found.zone;
  const names = decision.zones.map((candidate) => candidate.zone);
  throw usageFailure(`${decision.namespace}/${decision.group} has no zone ${zone}`, `its zones: ${names.join(', ')}`);
}

interface Recorded {
  /** In PascalCase, such as Restarted. */
  readonly reason: string;
  /** The verb, such as Restart. */
  readonly action: string;
  readonly note: string;
  readonly about: KubernetesObject;
}

/**
 * Writes the reason of a request that leaves no intent as an Event on the object. The request has been carried out: when the Event cannot be
 * written that is said, and is no failure.
 */
export async function recordReason(
  { stderr }: CommandContext,
  { env, timeoutMs }: Cluster,
  { reason, action, note, about }: Recorded,
): Promise<void> {
  const nowMs = env.clock.nowMs();
  const { namespace = '', name, uid } = about.metadata;
  const event: KubernetesObject = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${name}.${Math.floor(nowMs).toString(16)}${Math.floor(env.random() * 0x10000).toString(16)}`, namespace },
    // Exactly six digits, as the API server wants it.
    eventTime: `${new Date(nowMs).toISOString().slice(0, -1)}000Z`,
    reportingController: 'rollout-group.dev/kubectl',
    reportingInstance: 'kubectl-rollout_group',
    action,
    reason,
    type: 'Normal',
    note: note.slice(0, 1024),
    regarding: { apiVersion: about.apiVersion, kind: about.kind, namespace, name, uid },
  };
  try {
    await createObject(env, resources.events, event, { site: 'act.createEvent', timeoutMs });
  } catch (error) {
    if (!(error instanceof ApiFailure) && !(error instanceof TransportFailure)) throw error;
    stderr.write(`note: the reason could not be recorded as an Event: ${error.message}\n`);
  }
}
