// A live group for programs: the decision as it was published, instants in RFC 3339, and where it comes from.
import type { LiveGroup } from '../live/groups.ts';

/** Keys in the order in which they are printed. */
export function groupDocument({ decision, from, unread }: LiveGroup): Readonly<Record<string, unknown>> {
  const { namespace, group, ...rest } = decision;
  return {
    group: { namespace, name: group },
    decidedBy: from === 'here' ? 'this command' : (decision.leader ?? 'agent'),
    ...(unread.length === 0 ? {} : { unread }),
    ...withInstants(rest),
  };
}

/** `at` and `phaseSince` say already that they are instants. */
function instantKey(name: string): string {
  return name === 'at' || /since$/i.test(name) ? name : `${name}At`;
}

/** `decidedMs: 1750000000000` becomes `decidedAt: 2025-06-15T15:06:40.000Z`, everywhere. Lengths of time, which end in `Ms` too, are none here. */
function withInstants(value: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]): [string, unknown] => {
      if (typeof member === 'number' && key.endsWith('Ms')) return [instantKey(key.slice(0, -2)), new Date(member).toISOString()];
      if (Array.isArray(member))
        return [key, member.map((item) => (typeof item === 'object' && item !== null ? withInstants(item) : item))];
      return [key, typeof member === 'object' && member !== null ? withInstants(member) : member];
    }),
  );
}
