// Tests that each verb that forecasts a rollout knows of the webhooks, the agent and the writes of the agent what a plan knows.
import { describe, expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { runOf as ledgerRun } from '../kit/questions.ts';
import { rolling, waiting } from './live-kit.ts';
import { adoptedObjects, ledgerObject } from './live-objects.ts';
import { act, apiVersion, failed, history, oncall, runOf } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

const account: FakeObject = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' },
};
const node: FakeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};

/** The pods of these zones run the template of the run. */
const objectsWith = (updated: readonly string[]): readonly FakeObject[] =>
  adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
    const { name, labels } = object.metadata;
    const isUpdated = object.kind === 'Pod' && updated.some((zone) => name.startsWith(`ingester-zone-${zone}-`));
    return isUpdated
      ? { ...object, metadata: { ...object.metadata, labels: { ...Object(labels), 'controller-revision-hash': 'rev-2' } } }
      : object;
  });
const startedMs = Date.now() - 60_000;
const { id } = runOf(waiting);
const run = ledgerRun({ id, wave: 2, startedMs, waveStartedMs: startedMs, movableAsOfMs: startedMs, lastDisruptionMs: startedMs + 1000 });
const inRun = [...objectsWith(['a']), ...history, ledgerObject({ run }), account, node];

const verbs: readonly (readonly [line: string, decision: PublishedDecision])[] = [
  ['restart ingester', waiting],
  ['undo ingester', rolling],
  ['retry ingester', failed],
  ['promote ingester --full --yes', { ...rolling, wave: { name: 'canary', index: 0, count: 3 } }],
  ['approve ingester --wave rest', waiting],
];

describe('if the agent has lost the right to replace pods', () => {
  const isAllowed = ({ resource, verb }: { readonly resource: string; readonly verb: string }) =>
    resource !== 'pods' || verb === 'list' || verb === 'watch' || verb === 'get';

  it.each(verbs)('%s says so', async (line, decision) => {
    const { stderr, stdout } = await act(line, { decision, extra: inRun, options: { stamp: oncall, isAllowed } });
    const [verb] = line.split(' ');
    expect(stderr, stdout).toMatch(
      new RegExp(`rollout-group/rollout-group-agent may not .* in mimir: no pod is replaced by eviction; ${verb} does not change it`),
    );
  });
});

describe('if no webhook records requesters', () => {
  it.each(['restart ingester', 'restart ingester --dry-run=client', 'retry ingester'])(
    '%s names the approvals that cannot be given',
    async (line) => {
      const decision = line.startsWith('retry') ? failed : waiting;
      const webhook = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration', metadata: { name: 'other' } };
      const { stdout, stderr } = await act(line, { decision, extra: [...inRun, webhook], options: { stamp: oncall } });
      const [verb] = line.split(' ');
      expect(stderr, stdout).toMatch(
        new RegExp(`no webhook records requesters, so no approval counts: .* does not exist; ${verb} does not change it`),
      );
      expect(stdout).not.toContain('waits for the approval of wave rest');
    },
  );
});

it.each(verbs)('%s names a write of the agent that the API server rejected', async (line, decision) => {
  const fact = 'the API server rejects the deletion of ingester-zone-b-1';
  const rejected = { ...decision, warnings: [...decision.warnings, { rule: 'write-accepted', outcome: 'wait', fact } as const] };
  const { stderr } = await act(line, { decision: rejected, extra: inRun });
  expect(stderr).toContain(`note: mimir/ingester: ${fact}; the agent repeats the write\n`);
});

describe('undo in the middle of a run', () => {
  const protection = (zone: string): FakeObject => ({
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name: `protect.${zone}.ingester`, namespace: 'mimir' },
    spec: { group: 'ingester', action: 'protect', zone },
  });

  it('names a protection of a zone with pods to replace, and not of a zone without', async () => {
    const undo = (zone: string) => act('undo ingester', { decision: rolling, extra: [...inRun, protection(zone)] });
    expect((await undo('a')).stderr).toContain('protects zone a; undo does not change it. To end it: kubectl rollout-group cancel');
    const { status, stdout, stderr } = await undo('c');
    expect([status, stdout, stderr]).toEqual([0, expect.stringContaining('2 pods are replaced'), '']);
  });
});
