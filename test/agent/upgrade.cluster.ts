// An agent of the last version is replaced by this version in the middle of a run, and by the last version in the next run. Also: a ledger
// in a newer format.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type AgentProcess, bundleAgent } from '../control-plane/agent-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, revisionOf } from '../control-plane/workloads.ts';
import { podsRemovedBy } from '../kit/watcher-requests.ts';
import { type Arena, openArena } from './arena.ts';

vi.setConfig({ maxConcurrency: 2, testTimeout: 300_000 });

/** The commit of 0.2.0. The next release is compared with the commit of its predecessor. */
const lastVersion = { version: '0.2.0', commit: 'b31c2806ac43f125bcbd6a131ce27cc8dc1345d9' };

function hasLastVersion(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${lastVersion.commit}^{tree}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Bundles the agent of the last version from its source, with the packages of this version. */
async function lastAgent(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-last-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const archive = execFileSync('git', ['archive', lastVersion.commit], { maxBuffer: 512 * 1_048_576 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  return bundleAgent(folder);
}

interface Setting {
  readonly namespace: string;
  readonly isAdopted: boolean;
  /** The flags with the policies. */
  readonly flags: readonly string[];
}

function nativeGroup(namespace: string, rollout: object = { strategy: 'onDelete', rotateBy: 'delete' }): object {
  const zones = ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
  const metadata = { name: 'ingester', namespace };
  return { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutGroup', metadata, spec: { members: { zones }, rollout } };
}

/** A group with the labels of grafana/rollout-operator, and one with waves whose pods the StatefulSet controller replaces. */
function settingOf(kind: 'adopted' | 'partition'): Setting {
  const namespace = `upgrade-${kind}`;
  if (kind === 'adopted') return { namespace, isAdopted: true, flags: [] };
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-policies-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const waves = [
    { name: 'canary', zones: ['a'], pods: 1, after: { soak: '2s' } },
    { name: 'rest', zones: ['a', 'b', 'c'], percent: 100 },
  ];
  writeFileSync(join(folder, 'group.yaml'), JSON.stringify(nativeGroup(namespace, { strategy: 'partition', waves })));
  return { namespace, isAdopted: false, flags: [`--policies=${folder}`] };
}

const isKnown = hasLastVersion();
if (!isKnown) process.stderr.write(`SKIPPED: the upgrade from ${lastVersion.version}, because this clone lacks its commit\n`);

describeOnControlPlane('an upgrade of the agent', (controlPlane) => {
  let recorder: HistoryRecorder;
  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    // The kinds are upgraded before the agent, and stay in a downgrade.
    for (const kind of ['RolloutGroup', 'RolloutPolicy', 'RolloutException', 'RolloutIntent', 'RolloutRun'] as const) {
      await controlPlane().client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
    }
  });
  afterAll(() => recorder?.stop());

  const pathOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps/rollout-group-ingester`;
  const ledgerOf = async (namespace: string): Promise<Ledger> => {
    const { data } = (await controlPlane().client.ask<KubernetesObject & { readonly data: Ledger['data'] }>('GET', pathOf(namespace))).body;
    return { data, run: JSON.parse(data.ledger).run };
  };
  /** Waits until some pods, but not all, are at the revision of the image. */
  const untilMidway = async ({ group }: Arena): Promise<void> => {
    const before = new Set((await group.pods()).map(revisionOf));
    await controlPlane().client.until<Pod>(group.podsPath, 'two updated pods', (pods) => {
      return pods.filter((pod) => isReady(pod) && !before.has(revisionOf(pod))).length >= 2;
    });
  };

  describe.skipIf(!isKnown)(isKnown ? 'in the middle of a run' : `SKIPPED: this clone lacks the commit of ${lastVersion.version}`, () => {
    let last: Promise<string> | undefined;

    it.concurrent.each(['adopted', 'partition'] as const)('continues the run of %s groups, and so does a downgrade', async (kind) => {
      const { namespace, isAdopted, flags } = settingOf(kind);
      const podAnnotations = { 'test.rollout-group.dev/ready-after': '1500ms' };
      const strategy = isAdopted ? 'OnDelete' : 'RollingUpdate';
      const arena = await openArena(controlPlane(), recorder, { namespace, podAnnotations, strategy, podManagementPolicy: 'Parallel' });
      const start = async (executable?: string): Promise<AgentProcess> => {
        const agent = await arena.start({ flags, ...(executable === undefined ? {} : { executable }) });
        await agent.untilReady();
        return agent;
      };
      const untilRecorded = (id: string): Promise<void> =>
        vi.waitFor(async () => expect((await ledgerOf(namespace)).run).toMatchObject({ id, outcome: 'completed' }), { timeout: 30_000 });
      try {
        last ??= lastAgent();
        const old = await start(await last);
        await arena.group.setImage('example.com/server:2');
        await untilMidway(arena);
        const begun = (await ledgerOf(namespace)).run.id;
        // Its node dies, so the new agent also takes over the open claims.
        await old.kill();
        const present = await start();
        await arena.group.untilRolled(120_000, { isAdopted });
        await untilRecorded(begun);

        await arena.group.setImage('example.com/server:3');
        await untilMidway(arena);
        const next = (await ledgerOf(namespace)).run.id;
        expect(next).not.toBe(begun);
        expect(await present.stop()).toBe(0);
        await start(await last);
        await arena.group.untilRolled(120_000, { isAdopted });
        await untilRecorded(next);
        await arena.expectKept();
        if (!isAdopted) return;
        const pods = arena.group.sets.flatMap((set) => [`${set}-0`, `${set}-0`, `${set}-1`, `${set}-1`]);
        expect([...podsRemovedBy(controlPlane().identities.agent.user, await arena.history())].sort()).toEqual(pods);
      } finally {
        await arena.close();
      }
    });
  });

  it.concurrent('of the ledger alone stops the group with a message until the ledger has a known format', async () => {
    const namespace = 'upgrade-ledger';
    const { client, identities } = controlPlane();
    const arena = await openArena(controlPlane(), recorder, { namespace });
    try {
      const groups = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
      await client.create(groups, nativeGroup(namespace));
      const agent = await arena.start();
      await agent.untilReady();
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled(120_000, { isAdopted: false });
      const { data } = await vi.waitFor(async () => {
        const read = await ledgerOf(namespace);
        expect(read.run.outcome).toBe('completed');
        return read;
      }, 30_000);
      const newer = data.ledger.replace('"format":"1.', '"format":"9.');
      expect(newer).not.toBe(data.ledger);
      const replaced = podsRemovedBy(identities.agent.user, await arena.history()).length;
      await client.patch(pathOf(namespace), 'merge', { data: { ledger: newer } });
      await arena.group.setImage('example.com/server:3');
      const cause = 'has the format 9.0, which only a newer version reads; this version reads 1 and 2';
      await client.until(groups, 'a condition with the format', (items) => JSON.stringify(conditionsOf(items)).includes(cause));
      const events = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
      await client.until(events, 'an Event with the format', (items) => JSON.stringify(items).includes(cause));
      const metrics = (await agent.ask('/metrics')).body;
      expect(metrics).toMatch(/^rollout_group_waits\{.*rule="view-complete".*\} 1$/m);
      expect(metrics).toMatch(/^rollout_group_turns_total\{.*result="failed".*\} [1-9]/m);
      expect(agent.log()).toContain(cause);
      // The agent neither acts nor writes a ledger that it does not know. Its other groups need it, so it does not end.
      expect(podsRemovedBy(identities.agent.user, await arena.history())).toHaveLength(replaced);
      expect((await ledgerOf(namespace)).data.ledger).toBe(newer);
      expect((await agent.ask('/ready')).status).toBe(200);

      await client.patch(pathOf(namespace), 'merge', { data: { ledger: data.ledger } });
      await arena.group.untilRolled(120_000, { isAdopted: false });
      await arena.expectKept();
    } finally {
      await arena.close();
    }
  });
});

interface Ledger {
  readonly data: { readonly ledger: string };
  readonly run: { readonly id: string; readonly outcome: string };
}

function conditionsOf(items: readonly object[]): unknown {
  return items.map((item) => (item as { readonly status?: { readonly conditions?: unknown } }).status?.conditions);
}
