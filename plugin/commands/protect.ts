// The verb protect: prevents replacement and scale-down of a group, a zone or single pods until a given time.
import { ordinalRanges } from '../../engine/amount.ts';
import { instantMs } from '../../policies/instant.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, usageFailure } from '../failure.ts';
import { type RequestedGroup, type RequestFlags, readAndSubmit } from '../live/submit-request.ts';
import { durationFlag } from '../live/target.ts';
import { findZone } from '../live/write-options.ts';
import { instantText } from '../output/plan/plan-text.ts';
import { placeText, plural, reasonSuffix } from '../output/text.ts';

export interface ProtectOptions extends RequestFlags {
  readonly zone?: string;
  readonly pod?: readonly string[];
  readonly duration?: string;
  readonly until?: string;
}

export function run(context: CommandContext, options: ProtectOptions): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => {
    const { name, live } = requested;
    const expiresMs = endOf(options, requested.cluster.env.clock.nowMs());
    const { zone, ordinals } = podsOf(requested, options, findZone(live, options.zone));
    const which = ordinals === undefined ? '' : `${plural(ordinals.length, 'pod')} (${ordinalRanges(ordinals)}) of `;
    const where = `${which}${placeText(name, zone)}`;
    return {
      key: `${zone ?? ''} ${ordinals?.join(',') ?? ''}`,
      spec: {
        action: 'protect',
        ...(zone === undefined ? {} : { zone }),
        ...(ordinals === undefined ? {} : { ordinals: [...ordinals] }),
        expires: new Date(expiresMs).toISOString(),
      },
      text: () =>
        `${where} protected until ${instantText(expiresMs)}${reasonSuffix(options.reason)}\n  no replacement and no scale-down; if the webhook is installed, it denies deletion and eviction\n`,
    };
  });
}

function endOf({ duration, until }: ProtectOptions, nowMs: number): number {
  if ((duration === undefined) === (until === undefined))
    throw usageFailure('a protection needs exactly one end', 'add --duration 2h or --until 2026-12-18T18:00:00Z');
  const endMs = duration === undefined ? instantMs(until ?? '') : nowMs + durationFlag('--duration', duration);
  if (endMs === undefined) throw usageFailure(`--until ${until} is not a valid time`, 'write it as 2026-12-18T18:00:00Z');
  if (endMs <= nowMs) throw usageFailure(`--until ${until} is in the past`, 'give a later time');
  return endMs;
}

interface Protected {
  readonly zone?: string;
  readonly ordinals?: readonly number[];
}

/** Returns the zone and the ordinals of the named pods. Throws Failure if a name is not a pod of the group, or the pods are in several zones. */
function podsOf({ live, name }: RequestedGroup, { pod = [] }: ProtectOptions, zone: string | undefined): Protected {
  if (pod.length === 0) return zone === undefined ? {} : { zone };
  const found = pod.map((wanted) => {
    const [, owner, ordinal] = /^(.+)-(\d{1,10})$/.exec(wanted) ?? [];
    const member = live.decision.zones.find((one) => one.statefulSet === owner) ?? live.decision.zones.find((one) => one.zone === owner);
    if (member === undefined)
      throw usageFailure(`${wanted} is not a pod of ${name}`, 'give the name of a pod, as kubectl get pods prints it, or zone and ordinal');
    return { zone: member.zone, ordinal: Number(ordinal) };
  });
  const zones = new Set([...found.map((one) => one.zone), ...(zone === undefined ? [] : [zone])]);
  const [first, ...others] = zones;
  if (first === undefined || others.length > 0)
    throw usageFailure('the pods are in several zones', 'protect the pods of one zone at a time');
  return { zone: first, ordinals: [...new Set(found.map(({ ordinal }) => ordinal))].sort((a, b) => a - b) };
}
