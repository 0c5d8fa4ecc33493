// Evaluates the requests by which a person protects zones and pods from disruption until a given time.
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { result } from '../rule.ts';
import { objectOf, requesterText, requestPlace } from '../run/requests.ts';
import { type IntentView, isUnknown } from '../snapshot.ts';

type Zone = Pick<ZoneView, 'zone'>;

function protections({ intents }: GroupContext, { zone }: Zone): readonly IntentView[] {
  if (isUnknown(intents)) return [];
  return intents.filter(({ action, zone: only }) => action === 'protect' && (only === undefined || only === zone.name));
}

/** Reports whether a person protects the pod of this ordinal or the whole zone. */
export function isProtected(context: GroupContext, zone: Zone, ordinal: number): boolean {
  return protections(context, zone).some(({ ordinals }) => ordinals === undefined || ordinals.includes(ordinal));
}

/** A function that reports whether the pod of an ordinal is disrupted. */
type IsDisrupted = (ordinal: number) => boolean;

/** Returns the result that blocks a disruption; undefined if none applies. Without `isDisrupted`, only protection of the zone counts. */
export function protectedResult(context: GroupContext, zone: Zone, isDisrupted: IsDisrupted = () => false): RuleResult | undefined {
  const all = protections(context, zone);
  const protecting = all.find(({ ordinals }) => ordinals === undefined || ordinals.some(isDisrupted));
  if (protecting === undefined) return undefined;
  const place = requestPlace(protecting.ordinals === undefined ? protecting : { ...protecting, zone: zone.zone.name });
  return result('protected', 'wait', `${requesterText(protecting)} protects ${place}`, {
    source: objectOf(protecting),
    earliestMs: protecting.expiresMs,
  });
}

/** Returns the results that block the request of another client. Unreadable protections block it, except in adopted groups. */
export function protectedFromOthers(context: GroupContext, zone: Zone, isDisrupted: IsDisrupted): readonly RuleResult[] {
  const { intents, group } = context;
  if (isUnknown(intents)) {
    if (!profileOf(group).blocksOnUnreadableRequests) return [];
    return [result('protected', 'unknown', `protections could not be read: ${intents.unknown}`)];
  }
  const held = protectedResult(context, zone, isDisrupted);
  return held === undefined ? [] : [held];
}
