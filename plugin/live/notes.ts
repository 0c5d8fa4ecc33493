// Notes on live groups: no agent published them, the agent stopped, or a list could not be read.
import type { Cluster } from '../connection.ts';
import { agentState, freshMs } from './agent.ts';
import type { LiveGroup } from './groups.ts';
import type { ReadGroups } from './read.ts';
import { nameOf } from './target.ts';
import { ageText } from './when.ts';

export interface Notes {
  /** One sentence each. */
  readonly lines: readonly string[];
  /** An agent published one of the groups and stopped. */
  readonly isAgentStopped: boolean;
  /** The groups of the stopped agent, as `namespace/group`. */
  readonly unattended: ReadonlySet<string>;
}

/** Marks the group as unattended if its agent stopped and published no newer decision. */
export function markUnattended(live: LiveGroup, { unattended }: Pick<Notes, 'unattended'>, nowMs: number): LiveGroup {
  const isUnattended = unattended.has(nameOf(live.decision)) && nowMs - live.decision.decidedMs > freshMs;
  return isUnattended ? { ...live, isUnattended } : live;
}

/** Collects the notes. Reads Leases only for decisions older than a minute. */
export async function notesOn(cluster: Cluster, { groups, problems }: Pick<ReadGroups, 'groups' | 'problems'>): Promise<Notes> {
  const nowMs = cluster.env.clock.nowMs();
  const here = groups.filter(({ from }) => from === 'here');
  const old = groups.filter(({ from, decision }) => from === 'agent' && nowMs - decision.decidedMs > freshMs);
  const stopped = await stoppedLines(cluster, old, nowMs);
  return {
    lines: [...hereLines(here), ...stopped.lines, ...problems.map((problem) => `not used: ${problem}`)],
    isAgentStopped: stopped.isAgentStopped,
    unattended: stopped.unattended,
  };
}

function hereLines(here: readonly LiveGroup[]): readonly string[] {
  const [first] = here;
  if (first === undefined) return [];
  const names = here.length > 3 ? `${here.length} groups` : here.map(({ decision }) => nameOf(decision)).join(', ');
  const unread = first.unread.length === 0 ? '' : `; ${first.unread.join(', ')} may not be read`;
  return [`no agent has published ${names}; evaluated here${unread}`];
}

async function stoppedLines(cluster: Cluster, old: readonly LiveGroup[], nowMs: number): Promise<Notes> {
  const leaders = new Map(old.map((live) => [live.decision.leader ?? '', live]));
  const lines: string[] = [];
  const stoppedLeaders = new Set<string>();
  for (const [leader, { decision }] of leaders) {
    const state = await agentState(cluster, decision);
    const age = `the decision was made ${ageText(decision.decidedMs, nowMs)} ago`;
    if (state.kind === 'stopped') {
      stoppedLeaders.add(leader);
      const ago = `${ageText(state.renewedMs, nowMs)} ago`;
      const why = state.holder === '' ? `its Lease was released ${ago}` : `${state.holder} renewed its Lease ${ago}`;
      lines.push(`the agent is not running: ${why}; ${age}`);
    } else if (state.kind === 'unseen') lines.push(`${age}; whether the agent is running is unknown`);
  }
  const unattended = new Set(
    old.filter(({ decision }) => stoppedLeaders.has(decision.leader ?? '')).map(({ decision }) => nameOf(decision)),
  );
  return { lines, isAgentStopped: stoppedLeaders.size > 0, unattended };
}
