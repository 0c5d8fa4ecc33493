// The converted examples are what init makes of the originals beside them, and do what the originals did.
import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import { snapshotFromManifests } from '../../../engine/observe/manifests.ts';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import type { GateReading } from '../../../engine/snapshot.ts';
import { lintPolicies } from '../../../policies/lint/lint.ts';
import { loadPolicies } from '../../../policies/load.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { manifestText, writeDocument } from '../../../policies/write.ts';
import { bundleOf, filesBelow } from '../../examples/examples.ts';
import { kitNowMs, outdatedStatefulSet } from '../../kit/objects.ts';
import { ledgerOf } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { converted } from './foreign-kit.ts';

const texts = (folder: string) =>
  filesBelow(`examples/${folder}`)
    .map(({ text }) => text)
    .sort();

describe('examples/phased-rollout', () => {
  const folder = 'examples/phased-rollout';
  const manifests = loadPolicies(filesBelow(`${folder}/manifests`));
  const policies = loadPolicies(filesBelow(`${folder}/policies`));
  const bundle = bundleOf(policies.documents, manifests);
  const current = manifests.manifests.map(({ value }) => value);

  it('has the policies that init writes', () => {
    const { groups, documents } = converted([...filesBelow(`${folder}/original`), ...filesBelow(`${folder}/manifests`)]);
    expect([...groups, ...documents].map((document) => writeDocument(document)).sort()).toEqual(texts('phased-rollout/policies'));
  });

  it('has no error and no warning', () => {
    const { findings } = lintPolicies([...filesBelow(`${folder}/policies`), ...filesBelow(`${folder}/manifests`)]);
    expect(findings.filter(({ severity }) => severity !== 'notice')).toEqual([]);
  });

  it('allows no pod at first, because the agent first raises the partition', () => {
    const { snapshot } = snapshotFromManifests(current, { nowMs: 0, groups: bundle.groups });
    const actions = decide({ ...snapshot, ...bundle }).groups.flatMap((group) => group.actions);
    expect(actions.map(({ kind }) => kind)).toEqual(['setPartition']);
  });

  it('rolls out a new version pod by pod, with the gate before each', () => {
    const next = filesBelow(`${folder}/manifests`).map(({ name, text }) => ({ name, text: text.replace('ledger:1.4.0', 'ledger:1.5.0') }));
    const desired = loadPolicies(next).manifests.map(({ value }) => value);
    const input = { ...bundle, policyDigest: '', current, desired, assumptions: defaultAssumptions, nowMs: 0 };
    const [plan] = planGroups(input).groups;
    const steps = (plan?.waves ?? []).flatMap((wave) => wave.steps.map(({ kind, pods }) => [kind, ...(pods ?? [])].join(' ')));
    expect(plan?.outcome).toBe('complete');
    expect(steps).toEqual(['check', 'roll ledger-2', 'check', 'roll ledger-1', 'check', 'roll ledger-0']);
  });

  it('replaces the first pod after four answers in a row with a series, and not after three, an empty answer or an error', () => {
    const held = outdatedStatefulSet({
      namespace: 'payments',
      name: 'ledger',
      updateStrategy: 'RollingUpdate',
      partition: holdingPartition,
    });
    const nowMs = kitNowMs;
    const snapshot = snapshotOf({ groups: bundle.groups, statefulSets: [held] });
    const [first] = decide(snapshot).groups;
    const run = first?.run && { ...first.run, waveStartedMs: nowMs - 3_600_000 };
    const withReadings = (readings: readonly GateReading[]) => {
      const ledgers = run === undefined ? [] : [ledgerOf({ namespace: 'payments', group: 'ledger', run })];
      const gateReadings = [{ namespace: 'payments', group: 'ledger', gate: 'check', readings }];
      const actions = decide({ ...snapshot, ledgers, gateReadings }).groups.flatMap((group) => group.actions);
      return actions.flatMap((action) =>
        action.kind === 'setPartition' ? [action.to, ...action.pods.map(({ pod }) => pod)] : [action.kind],
      );
    };
    const at = (back: number) => nowMs - back * 30_000;
    const series = (back: number): GateReading => ({ atMs: at(back), result: 'value', value: 1 });
    expect(first?.actions).toEqual([]);
    expect(withReadings([series(2), series(1), series(0)])).toEqual([]);
    expect(withReadings([series(3), { atMs: at(2), result: 'noData' }, series(1), series(0)])).toEqual([]);
    expect(withReadings([series(3), series(2), series(1), { atMs: at(0), result: 'error', message: 'HTTP 503' }])).toEqual([]);
    expect(withReadings([series(3), series(2), series(1), series(0)])).toEqual([2, 'ledger-2']);
  });
});

describe('examples/statefulset-rollout', () => {
  const { groups, documents, statefulSets } = converted(filesBelow('examples/statefulset-rollout/original'));

  it('has the policies that init writes', () => {
    expect([...groups, ...documents].map((document) => writeDocument(document)).sort()).toEqual(texts('statefulset-rollout/policies'));
  });

  it('has the StatefulSet of the object', () => {
    expect(texts('statefulset-rollout/manifests')).toContain(statefulSets.map(manifestText).join('---\n'));
  });
});
