// What is remembered between turns: claim, downscaled, and the command ledger that prints it.
import type { Claim, Ledger, RunState } from '../../../engine/snapshot.ts';
import { type Commands, count, duration, word } from '../command.ts';
import { instant } from '../print.ts';
import { ledgerOf, nowMs, policiesNow, type Stage, saveLedger, zoneNamed } from '../stage.ts';

export const ledgerCommands: Commands = {
  /** `claim scale-down b 5 3`: announced, and not yet seen. */
  claim: (stage, call) => {
    const { group, zone } = zoneNamed(stage, word(call, 1, 'a zone'));
    const uid = stage.world.snapshot.statefulSets.find(({ name }) => name === zone.statefulSet)?.uid ?? '';
    const change = { from: count(call, 2, 'replicas before'), to: count(call, 3, 'replicas after') };
    const claim: Claim = { verb: 'scaleDown', zone: zone.name, uid, ...change, atMs: nowMs(stage) };
    const ledger = ledgerOf(stage, group.name);
    saveLedger(stage, { ...ledger, claims: [...ledger.claims, claim] });
    return [];
  },
  /** `downscaled b 3 2 5m`: it was, so long ago. */
  downscaled: (stage, call) => {
    const { group, zone } = zoneNamed(stage, word(call, 0, 'a zone'));
    const atMs = nowMs(stage) - duration(word(call, 3, 'how long ago'));
    const record = { zone: zone.name, atMs, from: count(call, 1, 'replicas before'), to: count(call, 2, 'replicas after') };
    const ledger = ledgerOf(stage, group.name);
    saveLedger(stage, { ...ledger, downscales: [...ledger.downscales, record] });
    return [];
  },
  ledger: (stage) => policiesNow(stage).groups.flatMap(({ name }) => ledgerLines(stage, ledgerOf(stage, name))),
};

function ledgerLines(stage: Stage, { claims, downscales, preparations, run }: Ledger): readonly string[] {
  const lines = [
    ...(run === undefined ? [] : [runLine(run)]),
    ...claims.map((claim) => `claim ${claim.verb} ${claim.zone} ${claim.from} -> ${claim.to} at ${instant(claim.atMs)}`),
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
  const failure = run.failure === undefined ? '' : `: ${run.failure}`;
  const wave = run.outcome === 'completed' ? '' : `, wave ${run.wave + 1}`;
  return `${run.kind} to ${target.join(' ')} ${run.outcome}${failure}${wave}${open}`;
}
