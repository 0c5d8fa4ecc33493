// Marks which write of which process an object includes, so that a write without a response is recognized after later writes.
import { isJsonObject, parseJson } from '../request/json.ts';
import type { KubernetesObject } from '../request/resource.ts';

/** Holds the number of the last write of each of the last writers, as JSON. */
export const writersAnnotation = 'rollout-group.dev/writers';

/** Far more than ever write to one object at the same time: replicas of the agent and of the webhook, old and new ones. */
const writersKept = 16;

/** A name for one writer in one process; never looks like a number, so that JSON keeps the order of its keys. */
export function writerId(random: () => number): string {
  const part = (): string =>
    Math.floor(random() * 2 ** 32)
      .toString(36)
      .padStart(7, '0');
  return `w${part()}${part()}`;
}

/** Returns the number of this writer's last write in the object; 0 without one. */
export function lastWriteOf(object: KubernetesObject | undefined, writer: string): number {
  return marksOf(object)[writer] ?? 0;
}

/** The annotation with this write as the newest. */
export function withWrite(object: KubernetesObject | undefined, writer: string, sequence: number): string {
  const { [writer]: _, ...others } = marksOf(object);
  return JSON.stringify(Object.fromEntries([...Object.entries(others), [writer, sequence]].slice(-writersKept)));
}

function marksOf(object: KubernetesObject | undefined): Readonly<Record<string, number>> {
  const text = object?.metadata.annotations?.[writersAnnotation];
  if (typeof text !== 'string') return {};
  try {
    const value = parseJson(text);
    if (!isJsonObject(value)) return {};
    return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])));
  } catch {
    // The annotation was edited. The next write repairs it.
    return {};
  }
}
