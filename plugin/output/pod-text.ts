// Builds the short names of pods, for texts about one group: zone and ordinal, such as `a-2` for ingester-zone-a-2.

/** Returns `a-2` for a pod of zone a. A name without an ordinal is unchanged. */
export function podText(zone: string, pod: string): string {
  const ordinal = /-(\d{1,10})$/.exec(pod)?.[1];
  return ordinal === undefined ? pod : `${zone}-${ordinal}`;
}

/** Returns pods of one zone: `a-2`, `a 19..0` or `a 19..12, 10`. */
export function zonePodsText(zone: string, pods: readonly string[]): string {
  const [first, ...more] = pods;
  return first !== undefined && more.length === 0 ? podText(zone, first) : `${zone} ${podsText(pods)}`.trim();
}

export function shortPods(text: string, zones: readonly { readonly zone: string; readonly statefulSet?: string | undefined }[]): string {
  return text.replace(/(?<![\w./-])([a-z0-9][a-z0-9.-]*)-\d{1,10}(?![\w./-])/g, (pod, owner: string) => {
    const zone = zones.find(({ statefulSet }) => statefulSet === owner);
    return zone === undefined ? pod : podText(zone.zone, pod);
  });
}

/** Returns the ordinals of pods as ranges, in the given order: `19..0`, `19..12, 10`. Names without an ordinal are unchanged. */
export function podsText(pods: readonly string[]): string {
  const ranges: { first: number; last: number }[] = [];
  const others: string[] = [];
  for (const pod of pods) {
    const ordinal = Number(/-(\d{1,10})$/.exec(pod)?.[1] ?? Number.NaN);
    const range = ranges.at(-1);
    if (Number.isNaN(ordinal)) others.push(pod);
    else if (range !== undefined && continues(range, ordinal)) range.last = ordinal;
    else ranges.push({ first: ordinal, last: ordinal });
  }
  return [...ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}..${last}`)), ...others].join(', ');
}

function continues(range: { readonly first: number; readonly last: number }, ordinal: number): boolean {
  if (range.first === range.last) return Math.abs(ordinal - range.last) === 1;
  return ordinal - range.last === Math.sign(range.last - range.first);
}
