// Divides a simulation with several groups among their judges: each judge sees only what concerns its group.
import { parsed, textAt } from '../objects.ts';
import type { Answered, Json } from '../server/request.ts';
import type { Oracle } from './oracle.ts';

export interface GroupName {
  readonly namespace: string;
  readonly name: string;
}

/** A group of a simulation with several groups. */
export interface NamedGroup extends GroupName {
  readonly statefulSets: readonly string[];
}

/** An object by its name, and its content if it is known. */
interface Named {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly object?: Json | undefined;
}

/** The begin of names of objects before the name of their group: ledgers, published decisions, requests and exceptions. */
const prefix = /^(?:rollout-group-|rollout-status-|pause-|[a-z]+\.)/;

/**
 * Returns the group of an object: the one that its spec names, or else the one in its name. Undefined for an object of no group, for example
 * in a namespace without groups. In a namespace with one group, every object belongs to this group.
 */
export function ownerOf<Group extends GroupName>(groups: readonly Group[], named: Named): Group | undefined {
  const { namespace, name } = named;
  const found = groups.filter((group) => group.namespace === namespace);
  if (found.length < 2) return found[0];
  const spec = named.object?.['spec'];
  const written = textAt(spec, 'group') ?? textAt(spec, 'target', 'group') ?? textAt(spec, 'targets', 'groups', '0');
  const isNamed = (text: string): ((group: Group) => boolean) => {
    return (group) => text === group.name || text.startsWith(`${group.name}-`) || text.startsWith(`${group.name}.`);
  };
  const longest = (text: string): Group | undefined =>
    found.filter(isNamed(text)).sort((one, other) => other.name.length - one.name.length)[0];
  return written === undefined ? (longest(name) ?? longest(name.replace(prefix, ''))) : found.find((group) => group.name === written);
}

/** Every event that a judge may hear. */
const events = {
  sending: true,
  faulted: true,
  committed: true,
  answered: true,
  turnEnded: true,
  leadershipChanged: true,
  podCalled: true,
  gateAnswered: true,
  podAdmitted: true,
  reviewed: true,
  processChanged: true,
  directoryChanged: true,
  healingBegan: true,
  ended: true,
} as const satisfies Readonly<Record<keyof Oracle, true>>;

type Hear = (...about: unknown[]) => void;

/** Returns a judge that hears each event by the function that `hearing` returns for it. */
function hearingEach(hearing: (event: keyof Oracle) => Hear): Oracle {
  return Object.fromEntries(Object.keys(events).map((event) => [event, hearing(event as keyof Oracle)]));
}

function hearerOf(oracle: Oracle, event: keyof Oracle): Hear {
  return (...about) => (oracle[event] as Hear | undefined)?.apply(oracle, about);
}

/** Returns the judge, which sees what concerns its group or no group. */
export function ofGroup(oracle: Oracle, isOurs: (object: Named) => boolean): Oracle {
  const isOfTurn = ({ namespace, name }: GroupName): boolean => isOurs({ namespace, name });
  return {
    ...hearingEach((event) => hearerOf(oracle, event)),
    committed: (commit) => {
      const { namespace, name } = commit.after.metadata;
      if (isOurs({ namespace, name, object: commit.after })) oracle.committed?.(commit);
    },
    answered: (answered) => {
      if (isOurs(targetOf(answered))) oracle.answered?.(answered);
    },
    turnEnded: (process, report) => {
      if (isOfTurn(report.group)) oracle.turnEnded?.(process, report);
    },
    podCalled: (call) => {
      if (isOurs({ namespace: call.namespace, name: call.pod })) oracle.podCalled?.(call);
    },
    podAdmitted: (pod) => {
      if (isOurs({ namespace: pod.namespace, name: pod.pod })) oracle.podAdmitted?.(pod);
    },
    reviewed: (reviewed) => {
      const { namespace, name, object, oldObject } = reviewed.request;
      if (isOurs({ namespace, name, object: object ?? oldObject })) oracle.reviewed?.(reviewed);
    },
  };
}

/** Returns the judge, which judges nothing while the condition is false. */
export function whileTrue(oracle: Oracle, isTrue: () => boolean): Oracle {
  return hearingEach((event) => {
    const hear = hearerOf(oracle, event);
    return (...about) => {
      if (isTrue()) hear(...about);
    };
  });
}

/** Returns the judges as one, which asks them in this order. If one throws, the next are still asked. */
export function jointly(oracles: readonly Oracle[], threw: (error: unknown) => void): Oracle {
  return hearingEach((event) => {
    const hearers = oracles.filter((oracle) => oracle[event] !== undefined);
    return (...about) => {
      for (const oracle of hearers) {
        try {
          (oracle[event] as Hear).apply(oracle, about);
        } catch (error) {
          threw(error);
        }
      }
    };
  });
}

function targetOf({ namespace, name, request }: Answered): Named {
  const read = (): Json | undefined => parsed(request.body) as Json | undefined;
  return {
    namespace,
    name: name === '' ? (textAt(read(), 'metadata', 'name') ?? '') : name,
    // Only in a namespace with several groups does the content matter.
    get object() {
      return read();
    },
  };
}
