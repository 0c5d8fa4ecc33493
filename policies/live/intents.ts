// Converts RolloutIntents from objects and files to the requests that the engine reads.
import { instantMs } from '../instant.ts';
import type { Loaded } from '../load.ts';
import type { RolloutIntent } from '../schema/kinds.ts';
import { type Defined, defined } from '../values/defined.ts';

type Spec = RolloutIntent['spec'];

/** A request in the form that the engine reads. */
export type LiveIntent = Readonly<Defined<Omit<Spec, 'toRevision' | 'expires' | 'requestedBy'>>> & {
  readonly namespace: string;
  readonly name: string;
  readonly expiresMs?: number;
  readonly requestedBy?: { readonly user: string; readonly groups: readonly string[]; readonly atMs: number };
};

/** Returns the request of a document. Omits `requestedBy` if `isStamped` is false, because then no webhook has verified the user. */
export function intentOf({ namespace, name, value }: Loaded<'RolloutIntent'>, isStamped: boolean): LiveIntent {
  const { toRevision: _toRevision, expires, requestedBy, ...spec } = value.spec;
  const atMs = requestedBy && instantMs(requestedBy.at);
  return defined({
    ...spec,
    namespace,
    name,
    expiresMs: expires === undefined ? undefined : instantMs(expires),
    requestedBy: isStamped && requestedBy && atMs !== undefined ? { user: requestedBy.user, groups: requestedBy.groups, atMs } : undefined,
  });
}
