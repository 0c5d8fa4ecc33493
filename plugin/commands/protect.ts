// The verb protect: prevents replacement and scale-down of a group, a zone or single pods until a given time.
import { ordinalsIn } from '../../engine/amount.ts';
import { exposedText } from '../../engine/decide/stops.ts';
import { viewGroup } from '../../engine/observe/view.ts';
import { requestPlace } from '../../engine/run/requests.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import { instantMs, minuteText } from '../../policies/instant.ts';
import { type CommandContext, writeNotes } from '../context.ts';
import { readUnenforced } from '../doctor/gather/admission.ts';
import { type ExitCode, usageFailure } from '../failure.ts';
import { agentNamespaceFor } from '../live/agent.ts';
import { findPod, type LiveGroup } from '../live/groups.ts';
import { type RequestedGroup, type RequestFlags, readAndSubmit } from '../live/submit-request.ts';
import { endFlag } from '../live/target.ts';
import { findZone } from '../live/write-options.ts';
import { unreadZones } from '../output/group-text.ts';
import { placeText, reasonSuffix } from '../output/text.ts';
import { countedLimit } from '../output/zone-progress.ts';

export interface ProtectOptions extends RequestFlags {
  readonly zone?: string;
  readonly pod?: readonly string[];
  readonly duration?: string;
  readonly until?: string;
}

export function run(context: CommandContext, options: ProtectOptions): Promise<ExitCode> {
  return readAndSubmit(context, options, async (requested) => {
    const { cluster, name, live, snapshot } = requested;
    const expiresMs = endOf(options, cluster.env.clock.nowMs());
    const place = podsOf(requested, options.pod, findZone(live, options.zone));
    const { zone, ordinals } = place;
    writeNotes(context, absentPods(live, zone, ordinals));
    const exposed = snapshot && live.definition ? exposedText(viewGroup(snapshot, live.definition), place) : '';
    const where = ordinals === undefined ? placeText(name, zone) : `${name} ${requestPlace(place)}`;
    const read = () => readUnenforced(cluster, agentNamespaceFor(cluster, live.decision), live.decision.namespace);
    // The protection does not need the answer, and a dry run does not print it.
    const unenforced = options.dryRun === undefined ? await read().catch((error: unknown) => ({ unknown: messageOf(error) })) : undefined;
    return {
      key: `${zone ?? ''} ${ordinals?.join(',') ?? ''}`,
      spec: { action: 'protect', ...place, expires: new Date(expiresMs).toISOString() },
      text: () =>
        `${where} protected until ${minuteText(expiresMs)}${reasonSuffix(options.reason)}\n  no replacement and no scale-down of ${requestPlace(place)}; ${enforcedText(unenforced)}${exposed}\n`,
    };
  });
}

function enforcedText(unenforced: Known<string | undefined>): string {
  if (unenforced === undefined) return 'the webhook denies deletion and eviction';
  if (isUnknown(unenforced)) return `it is unknown whether a webhook denies deletion and eviction (${unenforced.unknown})`;
  return `no webhook denies deletion (${unenforced})`;
}

function endOf({ duration, until }: ProtectOptions, nowMs: number): number {
  if ((duration === undefined) === (until === undefined))
    throw usageFailure('a protection needs exactly one end', 'add --duration 2h or --until 2026-12-18T18:00:00Z');
  const endMs = duration === undefined ? instantMs(until ?? '') : nowMs + endFlag('--duration', duration);
  if (endMs === undefined) throw usageFailure(`--until ${until} is not a valid time`, 'write it as 2026-12-18T18:00:00Z');
  if (endMs <= nowMs) throw usageFailure(`--until ${until} is in the past`, 'give a later time');
  return endMs;
}

/** Returns a note for each named pod that the zone does not have. A protection of a later pod is valid, for example before a scale-up. */
function absentPods({ decision }: LiveGroup, zone: string | undefined, ordinals: readonly number[] = []): readonly string[] {
  const member = decision.zones.find((one) => one.zone === zone);
  if (member === undefined || unreadZones(decision).includes(member.zone) || decision.omitted.length > 0) return [];
  const { statefulSet, revisions } = member;
  const present = new Set(revisions.flatMap((one) => ordinalsIn(one.ordinals, countedLimit) ?? ordinals));
  const moving = new Set(decision.pods.map(({ pod }) => pod));
  return ordinals
    .map((ordinal) => ({ ordinal, pod: `${statefulSet}-${ordinal}` }))
    .filter(({ ordinal, pod }) => !present.has(ordinal) && !moving.has(pod))
    .map(({ pod }) => `pod ${pod} does not exist; the protection applies to a later pod of this name`);
}

/** Returns the zone and the ordinals of the named pods. Throws Failure for a name that is no pod of the group, and for several zones. */
function podsOf({ live, name }: RequestedGroup, pod: readonly string[] = [], zone?: string): { zone?: string; ordinals?: number[] } {
  if (pod.length === 0) return zone === undefined ? {} : { zone };
  const found = pod.map((wanted) => {
    const member = findPod(live, wanted);
    if (member === undefined)
      throw usageFailure(`${wanted} is not a pod of ${name}`, 'give the name of a pod, as kubectl get pods prints it, or zone and ordinal');
    return { zone: member.zone, ordinal: Number(/\d+$/.exec(member.pod)) };
  });
  const zones = new Set([...found.map((one) => one.zone), ...(zone === undefined ? [] : [zone])]);
  const [first, ...others] = zones;
  if (first === undefined || others.length > 0)
    throw usageFailure('the flags select several zones', 'protect the pods of one zone at a time');
  return { zone: first, ordinals: [...new Set(found.map(({ ordinal }) => ordinal))].sort((a, b) => a - b) };
}
