// Converts RolloutIntents from objects and files to the requests that the engine reads.
import { instantMs } from '../instant.ts';
import type { Loaded } from '../load.ts';
import type { RolloutIntent } from '../schema/kinds.ts';
import { type Defined, defined } from '../values/defined.ts';
import { hashText } from '../values/hash.ts';
import { loadObjects } from './objects.ts';

type Spec = RolloutIntent['spec'];

/** A request in the form that the engine reads. */
export type LiveIntent = Readonly<Defined<Omit<Spec, 'expires' | 'requestedBy'>>> & {
  readonly namespace: string;
  readonly name: string;
  readonly expiresMs?: number;
  readonly requestedBy?: { readonly user: string; readonly groups: readonly string[]; readonly atMs: number };
};

/** Returns the request of a document. Omits `requestedBy` if `isStamped` is false, because then no webhook has verified the user. */
export function intentOf({ namespace, name, value }: Loaded<'RolloutIntent'>, isStamped: boolean): LiveIntent {
  const { expires, requestedBy, ...spec } = value.spec;
  const atMs = requestedBy && instantMs(requestedBy.at);
  return defined({
    ...spec,
    namespace,
    name,
    expiresMs: expires === undefined ? undefined : instantMs(expires),
    requestedBy: isStamped && requestedBy && atMs !== undefined ? { user: requestedBy.user, groups: requestedBy.groups, atMs } : undefined,
  });
}

/** Returns the request of an object with its requester. Returns the first problem of an object that the agent ignores, because it is invalid. */
export function readIntent(raw: unknown): LiveIntent | { readonly unknown: string } {
  const { documents, findings } = loadObjects([raw]);
  const [document] = documents;
  if (document?.kind === 'RolloutIntent') return intentOf(document, true);
  return { unknown: `RolloutIntent: ${findings[0]?.message ?? 'the object has another kind'}` };
}

/** Builds the RolloutIntent. By default, its name contains the action, the group and, if the key is not empty, a hash of the key. */
export function intentObject(
  { namespace, group }: { readonly namespace: string; readonly group: string },
  spec: Omit<Spec, 'group'>,
  key: string,
  name: string = [spec.action, group.slice(0, 200), ...(key === '' ? [] : [hashText(key).slice(0, 10)])].join('.'),
) {
  return { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutIntent', metadata: { name, namespace }, spec: { group, ...spec } };
}
