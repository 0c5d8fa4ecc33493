// What the verbs that ask something of a run have in common: the run as the agent published it, the intent, and whether anybody vouches for it.
import { isStatus } from '../../cluster/request/failure.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { hashText } from '../../engine/hash.ts';
import { observeIntent } from '../../engine/observe/objects.ts';
import type { PublishedRun } from '../../engine/publish/published.ts';
import { type IntentView, isUnknown } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { RolloutIntent } from '../../policies/schema/kinds.ts';
import { notInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { accessFor, type DryRun, printObjects } from './dry-run.ts';
import type { LiveGroup } from './groups.ts';
import { applyIntent } from './intents.ts';
import { notesOn } from './notes.ts';
import { type ReadGroups, readEvidence, scopeOf } from './read.ts';
import { type GroupName, groupNamed, nameOf } from './target.ts';

export interface AskFlags extends ConnectionFlags {
  readonly group: string;
  readonly reason?: string;
  readonly dryRun?: DryRun;
}

/** The group that something is asked of, as it is. */
export interface Asked {
  readonly cluster: Cluster;
  readonly target: GroupName;
  /** As it is named in messages and in commands to copy. */
  readonly name: string;
  readonly live: LiveGroup;
  /** Absent when the group is defined where only the agent reads. */
  readonly definition?: GroupDefinition;
  readonly read: ReadGroups;
}

type IntentSpec = RolloutIntent['spec'];

/** What is to be asked; `text` alone when there is nothing to ask for. */
export interface Request {
  readonly spec?: Omit<IntentSpec, 'group'>;
  /** What tells two of one action from each other, beside the group; asked for twice it is one object. */
  readonly key?: string;
  /** It lets something go on: without somebody who vouches for who asks it would count for nothing, and is refused. */
  readonly isPermit?: boolean;
  /** Asked before it is sent: false when the person does not mean it. Never asked in a dry run. */
  readonly isMeant?: () => Promise<boolean>;
  /** @throws Failure when what the API server says of the person is not enough. */
  readonly check?: (stamped: IntentView) => void;
  /** What is said when it is done, with what happens next. `by` is the person as the API server knows them. */
  readonly text: (by: string | undefined) => string;
}

/** Reads the group, asks, and says what comes of it. @throws Failure where the kind is not installed, or nobody can be believed to have asked. */
export function ask(context: CommandContext, flags: AskFlags, wishFor: (asked: Asked) => Request | Promise<Request>): Promise<ExitCode> {
  return withCluster(context, flags, accessFor(flags.dryRun), async (cluster) => {
    const asked = await askedGroup(cluster, flags.group);
    const wish = await wishFor(asked);
    return submit(context, flags, asked, wish);
  });
}

/** @throws Failure when there is no such group. */
export async function askedGroup(cluster: Cluster, group: string): Promise<Asked> {
  const target = groupNamed(group, cluster);
  const read = await readEvidence(cluster, scopeOf([target]));
  const [live] = read.groups;
  const name = nameOf(target);
  if (live === undefined) throw new Failure({ exitCode: exitCodes.notFound, what: `there is no group ${name}` });
  const definition = read.world.policies.groups.find((one) => one.namespace === target.namespace && one.name === target.group);
  return { cluster, target, name, live, read, ...(definition && { definition }) };
}

/** Carries a wish out. */
export async function submit(context: CommandContext, flags: AskFlags, { cluster, target, live }: Asked, wish: Request): Promise<ExitCode> {
  const { stdout, stderr } = context;
  const { key = '', isPermit = false } = wish;
  if (wish.spec === undefined) {
    stdout.write(wish.text(undefined));
    return exitCodes.done;
  }
  const spec = { ...wish.spec, ...(flags.reason === undefined ? {} : { reason: flags.reason }) };
  const object = intentObject(target, spec, key);
  if (flags.dryRun === 'client') {
    printObjects(context, [object]);
    return exitCodes.done;
  }
  // What nobody vouches for would stand there and count for nothing.
  const checked = isPermit || flags.dryRun === 'server' ? await send(cluster, object, true) : undefined;
  if (isPermit) {
    const vouched = vouchedFor(checked, spec.action);
    wish.check?.(vouched);
  }
  if (flags.dryRun === 'server') {
    printObjects(context, checked === undefined ? [] : [checked]);
    return exitCodes.done;
  }
  if (wish.isMeant !== undefined && !(await wish.isMeant())) return exitCodes.refused;
  // One object for each person: otherwise the word of one would take the place of another's.
  const own = isPermit ? intentObject(target, spec, `${key} ${userIn(checked)}`) : object;
  const written = await send(cluster, own, false);
  stdout.write(wish.text(userIn(written)));
  for (const line of (await notesOn(cluster, { groups: [live], problems: [] })).lines)
    stderr.write(`${stderr.paint('yellow', 'note:')} ${line}\n`);
  return exitCodes.done;
}

/** The action comes first and a key last, so that neither groups nor keys make two intents one. */
function intentObject({ namespace, group }: GroupName, spec: Omit<IntentSpec, 'group'>, key: string): KubernetesObject {
  const name = [spec.action, group.slice(0, 200), ...(key === '' ? [] : [hashText(key).slice(0, 10)])].join('.');
  return { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutIntent', metadata: { name, namespace }, spec: { group, ...spec } };
}

async function send(cluster: Cluster, object: KubernetesObject, isDryRun: boolean): Promise<KubernetesObject> {
  try {
    return await applyIntent(cluster, object, isDryRun);
  } catch (error) {
    throw isStatus(error, 404) ? notInstalled(rolloutIntents, 'nothing was asked') : error;
  }
}

function userIn(object: KubernetesObject | undefined): string | undefined {
  const view = object === undefined ? { unknown: 'nothing' } : observeIntent(object);
  return isUnknown(view) ? undefined : view.requestedBy?.user;
}

/** @throws Failure when the API server took the intent, and nobody wrote into it who asks. */
function vouchedFor(object: KubernetesObject | undefined, action: string): IntentView {
  const view = object === undefined ? { unknown: 'nothing' } : observeIntent(object);
  if (!isUnknown(view) && view.requestedBy !== undefined) return view;
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `to ${action} would count for nothing, and was not asked`,
    why: 'no webhook writes down who asks, and without it anybody could ask in the name of another',
    todo: 'install the webhook: kubectl rollout-group install',
  });
}

/**
 * The run as the agent knows it; undefined when there is none. What people say is bound to it by its id, which nobody else can know.
 *
 * @throws Failure when no agent has published the group.
 */
export function publishedRun({ live, name }: Pick<Asked, 'live' | 'name'>): PublishedRun | undefined {
  if (live.from === 'agent') return live.decision.run;
  throw new Failure({
    exitCode: exitCodes.unreachable,
    what: `nothing was asked of ${name}`,
    why: 'no agent has published it, and only the agent knows the run that is meant',
    todo: `see whether it runs: kubectl rollout-group doctor -n ${live.decision.namespace}`,
  });
}
