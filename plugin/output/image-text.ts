// Shows images, and the changes of images that a rollout makes.
import { groupBy } from '../../policies/values/group-by.ts';
import { listed } from '../../policies/wording.ts';
import { type ImageChange, partsOf } from '../live/facts.ts';
import { inZones } from './text.ts';

/**
 * Returns `mimir:2.16.0 -> 2.17.1, and 1 more`, or undefined without a known image change. Names every image that pods run: `mimir:2.15.0 and
 * 2.16.0 -> 2.17.1`. If the zones request different images, returns a part for each list of zones: `mimir:2.17.1 -> 2.16.0 in a; mimir:2.16.0
 * -> 2.17.1 in b and c`.
 */
export function changeText(changes: readonly ImageChange[], arrow: string): string | undefined {
  const parts = [...groupBy(changes, ({ zones = [] }) => zones.join()).values()].map((same) => {
    const [{ to, zones }] = same;
    const others = new Set(same.map((change) => change.to)).size - 1;
    const froms = same.filter((change) => change.to === to).map(({ from }) => from);
    return inZones(`${imageText(froms, to, arrow)}${others > 0 ? `, and ${others} more` : ''}`, zones);
  });
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** Returns `mimir:2.17.1`: the last part of the repository with the tag, or the start of the digest. */
export function shortImage(image: string): string {
  const { repository, tag, digest } = partsOf(image);
  return `${repository.slice(repository.lastIndexOf('/') + 1)}:${tag ?? digest?.slice(0, 12) ?? 'latest'}`;
}

/** Shows the last part of an unchanged repository once, and the digests if the tag is unchanged too. */
function imageText(froms: readonly string[], to: string, arrow: string): string {
  const after = partsOf(to);
  const before = froms.map(partsOf);
  if (before.some(({ repository }) => repository !== after.repository)) return `${listed(froms, 'and')} ${arrow} ${to}`;
  const name = after.repository.slice(after.repository.lastIndexOf('/') + 1);
  const isTagSame = before.every(({ tag }) => tag === after.tag);
  const versionOf = ({ tag, digest }: typeof after): string => {
    const short = digest?.slice(0, 12);
    return (isTagSame ? (short ?? tag) : (tag ?? short)) ?? 'latest';
  };
  return `${name}:${listed(before.map(versionOf), 'and')} ${arrow} ${versionOf(after)}`;
}
