// One turn of the agent in a scenario: decide, check the invariants, ask the webhook about its own writes, act, remember.
import { decide } from '../../engine/decide/decide.ts';
import type { Action, AdmissionRequest, GroupDecision } from '../../engine/decision.ts';
import { violationsOf } from '../../engine/invariants/invariants.ts';
import { judge } from '../../engine/judge/judge.ts';
import { claimsOf, decidedLedger, observeLedger } from '../../engine/ledger/ledger.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { ledgerOf, moveWorld, nowMs, observe, type Stage, saveLedger, takeReadings } from './stage.ts';

/** Longer than any time between zones in a story. */
const keepDownscalesMs = 30 * 24 * 3_600_000;

export interface TakenTurn {
  readonly decision: GroupDecision;
  /** What is wrong with the decision; nothing in a story that ends well. */
  readonly violations: readonly string[];
}

/** Decides once for every group and carries the actions out. */
export function takeTurn(stage: Stage): readonly TakenTurn[] {
  takeReadings(stage);
  lookAtClaims(stage);
  const snapshot = observe(stage);
  return decide(snapshot).groups.map((decision) => {
    const group = snapshot.groups.find(({ name }) => name === decision.group);
    const violations = group === undefined ? [] : violationsOf({ snapshot, group, decision });
    const refused = decision.actions.flatMap((action) => refusalOf(snapshot, decision.group, action));
    stage.decisions += 1;
    stage.violations.push(...violations, ...refused);
    remember(stage, decision, snapshot);
    for (const action of decision.actions) carryOut(stage, action);
    return { decision, violations: [...violations, ...refused] };
  });
}

/** Carries out one action on the model. Pods that refuse answer with a failure. */
export function carryOut(stage: Stage, action: Action): void {
  moveWorld(stage, { kind: 'action', action });
  if (action.kind !== 'callPods' || action.method !== 'POST') return;
  const group = stage.world.snapshot.groups.find(({ zones }) => zones.some(({ statefulSet }) => statefulSet === action.statefulSet));
  const ledger = ledgerOf(stage, group?.name ?? '');
  const preparations = ledger.preparations.map((entry) => {
    const isRefused =
      entry.zone === action.zone && entry.call === action.call && stage.refusing.has(`${action.statefulSet}-${entry.ordinal}`);
    const { reportedMs: _reportedMs, ...rest } = entry;
    return isRefused ? { ...rest, state: 'failed' as const, seenMs: nowMs(stage), message: 'status 500' } : entry;
  });
  saveLedger(stage, { ...ledger, preparations });
}

/** Claims end, and decreases are dated, by what is seen. */
function lookAtClaims(stage: Stage): void {
  const seen = observe(stage);
  for (const ledger of seen.ledgers) saveLedger(stage, observeLedger(ledger, seen, { keepDownscalesMs }));
}

function remember(stage: Stage, decision: GroupDecision, snapshot: Snapshot): void {
  stage.wanted.set(decision.group, decision.wantedReadings);
  const group = snapshot.groups.find(({ name }) => name === decision.group);
  if (group === undefined) return;
  saveLedger(stage, decidedLedger(ledgerOf(stage, decision.group), decision, { snapshot, group }));
}

/** The webhook judges the agent's own writes too, after they were announced; a refusal would make the agent wait for ever. */
function refusalOf(snapshot: Snapshot, group: string, action: Action): readonly string[] {
  const request = requestOf(action);
  if (request === undefined) return [];
  const empty = { namespace: action.namespace, group, claims: [], downscales: [], preparations: [] };
  const known = snapshot.ledgers.find((ledger) => ledger.group === group) ?? empty;
  const announced = { ...known, claims: [...known.claims, ...claimsOf([action], snapshot.nowMs)] };
  const ledgers = [...snapshot.ledgers.filter((ledger) => ledger.group !== group), announced];
  const judgement = judge({ ...snapshot, ledgers }, request);
  return judgement.outcome === 'allow' ? [] : [`the webhook refuses the agent's own write: ${judgement.message}`];
}

function requestOf(action: Action): AdmissionRequest | undefined {
  const { namespace } = action;
  if (action.kind === 'evictPod') return { kind: 'evictPod', namespace, pod: action.pod, dryRun: false };
  if (action.kind !== 'scaleStatefulSet') return undefined;
  return { kind: 'scale', namespace, statefulSet: action.statefulSet, from: action.from, to: action.to, via: 'patch', dryRun: false };
}
