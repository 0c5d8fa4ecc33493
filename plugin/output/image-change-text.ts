// The image change of a rollout, short enough for a headline.
import { type ImageChange, partsOf } from '../live/facts.ts';

/** Returns `mimir:2.16.0 -> 2.17.1, and 1 more`, or undefined without a known image change. */
export function changeText(changes: readonly ImageChange[], arrow: string): string | undefined {
  const [first] = changes;
  if (first === undefined) return undefined;
  return `${imageText(first, arrow)}${changes.length > 1 ? `, and ${changes.length - 1} more` : ''}`;
}

/** Shows the last part of an unchanged repository once, and the digests if the tag is unchanged too. */
function imageText({ from, to }: ImageChange, arrow: string): string {
  const [before, after] = [partsOf(from), partsOf(to)];
  if (before.repository !== after.repository) return `${from} ${arrow} ${to}`;
  const name = before.repository.slice(before.repository.lastIndexOf('/') + 1);
  const versionOf = ({ tag, digest }: typeof before): string => {
    const short = digest?.slice(0, 12);
    return (before.tag === after.tag ? (short ?? tag) : (tag ?? short)) ?? 'latest';
  };
  return `${name}:${versionOf(before)} ${arrow} ${versionOf(after)}`;
}
