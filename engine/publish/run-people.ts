// The requests about a run for its record: requester, time, reason and subject.
import { instantText } from '../../policies/instant.ts';
import type { RolloutRun } from '../../policies/schema/kinds.ts';
import { runLimits } from '../../policies/schema/rollout-run.ts';
import { contextOf } from '../context.ts';
import { isOfRun } from '../run/requests.ts';
import { type IntentView, isUnknown, type RunState } from '../snapshot.ts';
import type { RunTurn } from './run-record.ts';

type Spec = RolloutRun['spec'];
type Word = NonNullable<Spec['people']>[number];

/** Returns the spec with new requests added; the same value without new requests. The first ones stay if there are too many. */
export function withPeople(spec: Spec, { snapshot, group, startedMs }: RunTurn, run: RunState): Spec {
  const { intents, exceptions, nowMs } = contextOf(snapshot, group);
  const { people = [] } = spec;
  const said = isUnknown(intents) ? [] : intents.filter((intent) => isMeant(intent, run)).map((intent) => wordOf(intent, startedMs));
  const excepted = exceptions
    .filter(({ notBeforeMs = 0, expiresMs }) => notBeforeMs <= nowMs && expiresMs > nowMs)
    .map(({ name, rule, reason, zone }) =>
      short({ name, action: 'override', at: textOf(startedMs), reason, about: zone === undefined ? rule : `${rule} in zone ${zone}` }),
    );
  const isKnown = (word: Word): boolean =>
    people.some((one) => one.name === word.name && one.action === word.action && (word.by === undefined || one.at === word.at));
  const added = [...said, ...excepted].filter((word) => !isKnown(word)).slice(0, Math.max(0, runLimits.people - people.length));
  return added.length === 0 ? spec : { ...spec, people: [...people, ...added] };
}

/** Returns whether a request belongs to the run: a bound request to its run only, and requests that were in force when the run began. */
function isMeant(intent: IntentView, run: RunState): boolean {
  return intent.runId === undefined ? intent.action !== 'approve' || isOfRun(intent, run) : intent.runId === run.id;
}

function wordOf({ name, action, requestedBy, reason, zone, wave, rule, gate, ordinals }: IntentView, seenMs: number): Word {
  const about = [
    ...(wave === undefined ? [] : [`wave ${wave}`]),
    ...(rule === undefined ? [] : [`rule ${rule}`]),
    ...(gate === undefined ? [] : [`gate ${gate}`]),
    ...(zone === undefined ? [] : [`zone ${zone}`]),
    ...(ordinals === undefined ? [] : [`pods ${ordinals.slice(0, 20).join(', ')}`]),
  ];
  return short({
    name,
    action,
    ...(requestedBy === undefined ? {} : { by: requestedBy.user }),
    at: textOf(requestedBy?.atMs ?? seenMs),
    ...(reason === undefined ? {} : { reason }),
    ...(about.length === 0 ? {} : { about: about.join(', ') }),
  });
}

/** Shortens a request to the limits of the schema, so that many requests fit next to the steps. */
function short({ name, by, reason, about, ...rest }: Word): Word {
  return {
    ...rest,
    name: name.slice(0, 253),
    ...(by === undefined ? {} : { by: by.slice(0, 253) }),
    ...(reason === undefined ? {} : { reason: reason.slice(0, 256) }),
    ...(about === undefined ? {} : { about: about.slice(0, 256) }),
  };
}

function textOf(ms: number): string {
  return instantText(ms) ?? '1970-01-01T00:00:00Z';
}
