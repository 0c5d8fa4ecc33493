// The flags of a running agent, from the arguments of its pod.
import { fieldAt } from '../../engine/observe/raw.ts';

/** Returns the namespaces in `-namespaces` of a pod spec, with `*` for all; undefined without the argument. */
export function namespacesFlagOf(podSpec: unknown): readonly string[] | undefined {
  const containers = fieldAt(podSpec, ['containers']);
  const words = (Array.isArray(containers) ? containers : []).flatMap((container): readonly unknown[] =>
    ['command', 'args'].flatMap((field) => fieldAt(container, [field]) ?? []),
  );
  const named = words.flatMap((word) => (typeof word === 'string' ? (/^--?namespaces=(.+)$/.exec(word)?.[1]?.split(',') ?? []) : []));
  return named.length === 0 ? undefined : named.map((one) => one.trim());
}
