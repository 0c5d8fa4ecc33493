// What is remembered between turns: claim, and the command ledger that prints it.

import type { RunState } from '../../../engine/run/run-state.ts';
import type { Claim, Ledger } from '../../../engine/snapshot.ts';
import { type Commands, count, word } from '../command.ts';
import { instant } from '../print.ts';
import { findZone, ledgerOf, namespace, nowMs, podNamed, policiesNow, type Stage, saveLedger } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const ledgerCommands: Commands = {
  /** `claim scale-down b 5 3`, `claim evict b-1`: announced, and not yet seen. */
  claim: (stage, call) => {
    const target = word(call, 1, 'a zone or a pod');
    const claim = word(call, 0, 'scale-down or evict') === 'evict' ? podClaim(stage, target) : scaleClaim(stage, call, target);
    const { group } = findZone(stage, claim.zone);
    const ledger = ledgerOf(stage, group.name);
    saveLedger(stage, { ...ledger, claims: [...ledger.claims, claim] });
    return [];
  },
  ledger: (stage) => policiesNow(stage).groups.flatMap(({ name }) => ledgerLines(stage, ledgerOf(stage, name))),
};

function scaleClaim(stage: Stage, call: Call, name: string): Claim {
  const { zone } = findZone(stage, name);
  const uid = stage.world.snapshot.statefulSets.find((set) => set.name === zone.statefulSet)?.uid ?? '';
  const change = { from: count(call, 2, 'replicas before'), to: count(call, 3, 'replicas after') };
  return { verb: 'scaleDown', zone: zone.name, uid, ...change, atMs: nowMs(stage) };
}

function podClaim(stage: Stage, name: string): Claim {
  const pod = podNamed(stage, name);
  const { zone } = findZone(stage, pod.slice(0, pod.lastIndexOf('-')));
  const view = stage.world.pods.get(`${namespace}/${zone.statefulSet}`)?.pods.find(({ name }) => name === pod);
  if (view === undefined) throw new Error(`there is no pod ${pod}`);
  return { verb: 'evictPod', zone: zone.name, uid: view.uid, ordinal: view.ordinal, atMs: nowMs(stage) };
}

function claimLine({ verb, zone, ordinal, from, to, atMs }: Claim): string {
  const what = ordinal === undefined ? `${zone} ${from} -> ${to}` : `${zone}-${ordinal}`;
  return `claim ${verb} ${what} at ${instant(atMs)}`;
}

function ledgerLines(stage: Stage, { claims, downscales, preparations, run }: Ledger): readonly string[] {
  const lines = [
    ...(run === undefined ? [] : [runLine(run)]),
    ...claims.map(claimLine),
    ...downscales.map((record) => `zone ${record.zone} shrank ${record.from} -> ${record.to} at ${instant(record.atMs)}`),
    ...preparations.map((entry) => {
      const since = entry.reportedMs === undefined ? '' : `, says since ${instant(entry.reportedMs)}`;
      const told = entry.isWithdrawn === true ? ' and told to stay' : '';
      return `${entry.zone}-${entry.ordinal} ${entry.call} ${entry.state}${told}, seen ${instant(entry.seenMs)}${since}`;
    }),
  ];
  return lines.length === 0 ? [`nothing at ${instant(nowMs(stage))}`] : lines;
}

function runLine(run: RunState): string {
  const target = Object.entries(run.target).map(([zone, revision]) => `${zone}=${revision}`);
  const open = run.openZone === undefined ? '' : `, zone ${run.openZone} is open`;
  const failure = run.outcome === 'failed' ? `: ${run.failure}` : '';
  const wave = run.outcome === 'completed' ? '' : `, wave ${run.wave + 1}`;
  return `${run.kind} to ${target.join(' ')} ${run.outcome}${failure}${wave}${open}`;
}
