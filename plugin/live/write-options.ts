// Implements the options that verbs with writes share: confirmation, dry run, zone and reason.
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { apiVersionOf, type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, microTime } from '../../cluster/request/write.ts';
import { eventNote } from '../../policies/text/shorten.ts';
import { defined } from '../../policies/values/defined.ts';
import { rolloutGroups } from '../cluster-snapshot/kinds.ts';
import { itemsOf, type Listing, withoutManagedFields } from '../cluster-snapshot/listing.ts';
import type { Access, Cluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { toYaml } from '../output/yaml.ts';
import type { LiveGroup } from './groups.ts';
import type { GroupName } from './target.ts';

export type DryRun = 'client' | 'server' | undefined;

/** Returns the access of the connection. With a dry run, the connection rejects requests that would change an object. */
export function accessFor(dryRun: DryRun): Access {
  return dryRun === undefined ? 'write' : 'read';
}

/** Prints the objects of a dry run as a stream of YAML documents. Returns the exit code 0. */
export function printObjects({ stdout }: CommandContext, objects: readonly KubernetesObject[]): ExitCode {
  stdout.write(objects.map((object) => `---\n${toYaml(withoutManagedFields(object))}`).join(''));
  return exitCodes.done;
}

/** Finds a zone by its name or StatefulSet; undefined for all zones. Throws Failure if the group has no such zone. */
export function findZone({ decision }: LiveGroup, zone: string | undefined): string | undefined {
  if (zone === undefined) return undefined;
  const found = decision.zones.find((candidate) => candidate.zone === zone || candidate.statefulSet === zone);
  if (found !== undefined) return found.zone;
  const names = decision.zones.map((candidate) => candidate.zone);
  throw usageFailure(`${decision.namespace}/${decision.group} has no zone ${zone}`, `its zones: ${names.join(', ')}`);
}

interface Recorded {
  /** In PascalCase, such as Restarted. */
  readonly reason: string;
  /** The verb in PascalCase, such as Restart. */
  readonly action: string;
  /** The reason that the user gave, if any. */
  readonly note: string | undefined;
  readonly about: KubernetesObject;
}

/** Returns a reference to the group, for an Event about the whole group. A group that labels or files define has no object. */
export function groupReference({ namespace, group: name }: GroupName, { groups }: Listing): KubernetesObject {
  const object = itemsOf(groups).find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  const { uid } = object?.metadata ?? {};
  return { apiVersion: apiVersionOf(rolloutGroups), kind: rolloutGroups.kind, metadata: { namespace, name, ...defined({ uid }) } };
}

/** Records the reason in an Event, for a change without a RolloutIntent. A failure only prints a note, because the change has succeeded. */
export async function recordReason(
  { stderr }: CommandContext,
  { env, timeoutMs }: Cluster,
  { reason, action, note, about }: Recorded,
): Promise<void> {
  if (note === undefined) return;
  const nowMs = env.clock.nowMs();
  const { namespace = '', name, uid } = about.metadata;
  const event: KubernetesObject = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${name}.${Math.floor(nowMs).toString(16)}${Math.floor(env.random() * 0x10000).toString(16)}`, namespace },
    eventTime: microTime(nowMs),
    reportingController: 'rollout-group.dev/kubectl',
    reportingInstance: 'kubectl-rollout_group',
    action,
    reason,
    type: 'Normal',
    note: eventNote(note),
    regarding: { apiVersion: about.apiVersion, kind: about.kind, namespace, name, uid },
  };
  try {
    await createObject(env, resources.events, event, { site: 'act.createEvent', timeoutMs });
  } catch (error) {
    if (!(error instanceof ApiFailure) && !(error instanceof TransportFailure)) throw error;
    stderr.write(`note: no Event was written for the reason: ${error.message}\n`);
  }
}

export interface PromptFlags {
  readonly yes?: boolean;
  /** False with --no-input. */
  readonly input?: boolean;
  readonly confirm?: string;
}

/** Shows `preview` and asks for confirmation. Returns true at once with --yes, with --no-input and without a terminal. */
export async function confirmByPrompt({ ask, stderr }: CommandContext, { yes, input }: PromptFlags, preview: string): Promise<boolean> {
  if (yes === true || input === false || ask === undefined) return true;
  stderr.write(preview);
  const isYes = /^y(?:es)?$/i.test((await ask('Go on? [y/N] ')).trim());
  if (!isYes) stderr.write('nothing was changed\n');
  return isYes;
}

function unconfirmed(preview: string): string {
  return `${preview.trim().replace(/\.$/, '')}; it must be confirmed`;
}

/** Asks like `confirmByPrompt`. Without --yes, throws Failure if there is no terminal or --no-input is set. */
export async function confirmAlways(context: CommandContext, flags: PromptFlags, preview: string): Promise<boolean> {
  if (flags.yes !== true && (flags.input === false || context.ask === undefined)) throw usageFailure(unconfirmed(preview), 'add --yes');
  return confirmByPrompt(context, flags, preview);
}

/** Asks the user to type the name, or uses --confirm. Throws Failure if neither is possible, or if --confirm has another name. */
export async function confirmByName({ ask, stderr }: CommandContext, flags: PromptFlags, preview: string, name: string): Promise<boolean> {
  if (flags.confirm === name) return true;
  if (flags.confirm !== undefined) throw usageFailure(`--confirm ${flags.confirm} is not ${name}`, `give --confirm ${name}`);
  if (flags.input === false || ask === undefined) throw usageFailure(unconfirmed(preview), `give --confirm ${name}`);
  stderr.write(preview);
  const isSame = (await ask(`Type ${name} to confirm: `)).trim() === name;
  if (!isSame) stderr.write('nothing was changed\n');
  return isSame;
}
