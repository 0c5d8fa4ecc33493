// Compares the exceptions of both sides. An exception only permits, so an added one loosens.
import type { ExceptionDefinition } from '../policies/definition.ts';
import { minuteText } from '../policies/instant.ts';
import { defined } from '../policies/values/defined.ts';
import type { Direction, PolicyEffect } from './document.ts';
import { comparableText, type Pair } from './sides.ts';

/** Returns the effects of added, removed and changed exceptions. Exceptions that have ended count as absent. */
export function exceptionEffects(pair: Pair, nowMs: number): readonly PolicyEffect[] {
  const inForce = (side: Pair['before']) => (side?.exceptions ?? []).filter(({ expiresMs }) => expiresMs > nowMs);
  const [before, after] = [inForce(pair.before), inForce(pair.after)];
  const names = [...new Set([...before, ...after].map(({ name }) => name))].sort();
  return names.flatMap((name) => {
    const isNamed = (one: ExceptionDefinition): boolean => one.name === name;
    return changesOf(before.find(isNamed), after.find(isNamed)).map(({ direction, verb, exception }) =>
      effectOf(pair, direction, verb, exception),
    );
  });
}

interface Change {
  readonly direction: Direction;
  readonly verb: string;
  readonly exception: ExceptionDefinition;
}

function changesOf(before: ExceptionDefinition | undefined, after: ExceptionDefinition | undefined): readonly Change[] {
  const added = (exception: ExceptionDefinition): Change => ({ direction: 'loosened', verb: 'permits', exception });
  const removed = (exception: ExceptionDefinition): Change => ({ direction: 'tightened', verb: 'no longer permits', exception });
  if (before === undefined || after === undefined) return [...(before ? [removed(before)] : []), ...(after ? [added(after)] : [])];
  if (comparableText(before) === comparableText(after)) return [];
  if (before.rule !== after.rule || before.zone !== after.zone) return [removed(before), added(after)];
  const [wider, narrower] = [isWider(after, before), isWider(before, after)];
  if (!wider && !narrower) return [{ direction: 'changed', verb: 'still permits', exception: after }];
  return [
    ...(wider ? [{ direction: 'loosened' as const, verb: 'permits more of', exception: after }] : []),
    ...(narrower ? [{ direction: 'tightened' as const, verb: 'permits less of', exception: after }] : []),
  ];
}

/** Reports whether `one` permits something that `other` does not: at another time, or another amount. */
function isWider(one: ExceptionDefinition, other: ExceptionDefinition): boolean {
  if (one.expiresMs > other.expiresMs || (one.notBeforeMs ?? 0) < (other.notBeforeMs ?? 0)) return true;
  const { allow: mine } = one;
  const { allow: theirs } = other;
  if (theirs.anything === true) return false;
  return (
    mine.anything === true ||
    (mine.replicasAtLeast ?? Number.POSITIVE_INFINITY) < (theirs.replicasAtLeast ?? Number.POSITIVE_INFINITY) ||
    (mine.podsAtMost ?? 0) > (theirs.podsAtMost ?? 0)
  );
}

function effectOf(pair: Pair, direction: Direction, verb: string, exception: ExceptionDefinition): PolicyEffect {
  const { name, rule, zone, reason, requestedBy, notBeforeMs, expiresMs, source } = exception;
  const by = requestedBy === undefined ? '' : ` of ${requestedBy.user}`;
  const where = zone === undefined ? '' : ` in zone ${zone}`;
  const from = notBeforeMs === undefined ? '' : ` from ${minuteText(notBeforeMs)}`;
  return {
    direction,
    namespace: pair.namespace,
    group: pair.name,
    rule,
    decisions: [],
    cause: `exception ${name}${by} ${verb} ${rule}${where}${from} until ${minuteText(expiresMs)} (${reason})`,
    ...(direction === 'tightened' ? { before: { source } } : { after: { source } }),
    exception: {
      name,
      rule,
      reason,
      expires: new Date(expiresMs).toISOString(),
      ...defined({
        zone,
        requestedBy: requestedBy?.user,
        notBefore: notBeforeMs === undefined ? undefined : new Date(notBeforeMs).toISOString(),
      }),
    },
  };
}
