// What people say of a run, on a real control plane with the real agent: who counts, who never does, and what becomes of it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type AgentProcess, startAgentProcess } from '../control-plane/agent-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import { TestGroup } from '../control-plane/group.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { closeAll } from '../webhook/server/served.ts';
import { memberOf, type Person } from './live-people.ts';
import { groupObject, operatorRules } from './people-objects.ts';
import { runPlugin } from './process.ts';
import { installStamping } from './stamping.ts';

const namespace = 'mimir';
const apiVersion = 'rollout-group.dev/v1alpha1';
const path = `/apis/${apiVersion}/namespaces/${namespace}`;
const merge = 'application/merge-patch+json';

interface ImagesOfZone {
  readonly fromImages: object;
  readonly toImages: object;
}

interface Published {
  readonly phase: string;
  readonly run?: {
    readonly id: string;
    readonly outcome: string;
    readonly kind: string;
    readonly target: Readonly<Record<string, string>>;
  };
  readonly waits: readonly { readonly rule: string; readonly fact: string }[];
  readonly stops: readonly { readonly rule: string; readonly fact: string; readonly endsWith: string }[];
  readonly unusedExceptions?: readonly unknown[];
}

type GroupWithStatus = KubernetesObject & { readonly status?: { readonly decision?: Published } };

describeOnControlPlane('the word of people', (controlPlane) => {
  let group: TestGroup;
  let anna: Person;
  let eve: Person;
  let agent: AgentProcess | undefined;

  beforeAll(async () => {
    const { client, identities } = controlPlane();
    group = new TestGroup(client, { namespace });
    await group.create();
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    for (const kind of ['RolloutGroup', 'RolloutPolicy', 'RolloutException', 'RolloutIntent', 'RolloutRun'] as const) {
      await client.create(definitions, customResourceDefinition(kind));
    }
    await client.until(definitions, 'the kinds established', (items) =>
      items.every(
        (item) =>
          JSON.stringify(item).includes('"Established","status":"True"') ||
          /"status":"True","type":"Established"/.test(JSON.stringify(item)),
      ),
    );
    await client.create(`${path}/rolloutgroups`, groupObject);
    await grant(client, identities.agent, namespace, agentRules());
    await grantNodes(client, identities.agent);
    anna = await memberOf(controlPlane(), namespace, { user: 'anna', groups: ['oncall'] }, operatorRules);
    eve = await memberOf(controlPlane(), namespace, { user: 'eve', groups: ['dev'] }, operatorRules);
  });
  afterAll(async () => {
    await agent?.stop();
    await closeAll();
  });

  const startAgent = async (...flags: readonly string[]): Promise<void> => {
    await agent?.stop();
    agent = await startAgentProcess({ url: controlPlane().url, identity: controlPlane().identities.agent, namespace, flags });
    await agent.untilReady();
  };

  /** What the agent has published, as soon as it is so. */
  const until = async (what: string, isSo: (decision: Published) => boolean): Promise<Published> => {
    const [found] = await controlPlane().client.until<GroupWithStatus>(`${path}/rolloutgroups`, what, ([item]) => {
      const decision = item?.status?.decision;
      return decision !== undefined && isSo(decision);
    });
    if (found?.status?.decision === undefined) throw new Error('the group is there');
    return found.status.decision;
  };
  const untilHeld = (rule: string): Promise<Published> => until(`held by ${rule}`, ({ waits }) => waits.some((wait) => wait.rule === rule));
  const runId = (decision: Published): string => decision.run?.id ?? '';

  const images = async (): Promise<string> => (await group.pods()).map((pod) => /server:(\d)/.exec(JSON.stringify(pod))?.[1]).join('');

  const intent = (name: string, spec: object): object => ({
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name },
    spec: { group: 'ingester', ...spec },
  });
  const write = async (
    who: Person,
    name: string,
    spec: object,
  ): Promise<KubernetesObject & { readonly spec?: { readonly requestedBy?: { readonly user: string } } }> => {
    const { status, body } = await controlPlane()
      .clientOf(who.identity)
      .askUntilJudged('POST', `${path}/rolloutintents`, intent(name, spec));
    expect([name, status]).toEqual([name, 201]);
    return body;
  };
  const forget = async (...names: readonly string[]): Promise<void> => {
    for (const name of names) await controlPlane().client.ask('DELETE', `${path}/rolloutintents/${name}`);
  };

  /** Words reach the agent in the order in which they were written: one that holds shows that it has heard those before. */
  const hasHeard = async (): Promise<void> => {
    await write(anna, 'fence', { action: 'pause', zone: 'c', reason: 'a fence' });
    await until('the fence is heard', ({ stops }) => stops.some(({ fact }) => fact.includes('a fence')));
    await forget('fence');
    await until('the fence is gone', ({ stops }) => stops.every(({ fact }) => !fact.includes('a fence')));
  };

  const ok = async (who: Person, ...words: readonly string[]): Promise<string> => {
    const { status, stdout, stderr } = await who.run(words);
    expect(status, `${words.join(' ')}: ${stdout}${stderr}`).toBe(0);
    return stdout;
  };

  const forged = { user: 'anna', groups: ['oncall'], at: '2099-01-01T00:00:00Z' };

  it('without the webhook no requester is verified, and verbs that continue a run report it', async () => {
    await startAgent();
    await group.setImage('example.com/server:2');
    // The agent may see the new template of one zone first: then the canary has nothing to replace.
    const soaking = await until('the canary soaks', ({ waits }) => waits.some(({ fact }) => /soaked(?!.*does not change)/.test(fact)));
    const [object] = await controlPlane().client.list<GroupWithStatus>(`${path}/rolloutgroups`);
    expect(JSON.stringify(object?.status)).toMatch(/"message":"wave canary has soaked since \d{4}-[^"]+Z; the limit is 1h"/);
    expect(await ok(anna, 'get', 'ingester')).toMatch(/wave canary has soaked for \d+s/);
    const shown = JSON.parse(await ok(anna, 'get', 'ingester', '-o', 'json'));
    expect(shown.waits[0].fact).toMatch(/^wave canary has soaked since \d{4}-/);
    const id = runId(soaking);
    const before = await images();
    await write(eve, 'forged-promote', { action: 'promote', runId: id, wave: 'canary', requestedBy: forged });
    await write(eve, 'forged-approve', { action: 'approve', runId: id, wave: 'rest', requestedBy: forged });
    for (const verb of ['promote', 'approve --wave rest']) {
      const { status, stderr } = await anna.run([...verb.split(' ').slice(0, 1), 'ingester', ...verb.split(' ').slice(1)]);
      expect([verb, status]).toEqual([verb, 5]);
      expect(stderr).toContain('no webhook records the requester');
    }
    await hasHeard();
    expect([await images(), runId(await untilHeld('soak'))]).toEqual([before, id]);
    await forget('forged-pinned', 'forged-approve');
  });

  it('an abort without a verified requester ends the wait of status, and retry names the command that continues', async () => {
    const { run } = await untilHeld('soak');
    await write(eve, 'abort.forged', { action: 'abort', runId: run?.id ?? '', reason: 'errors', requestedBy: forged });
    const { stops } = await until('stopped by the abort', (decision) => decision.stops.length > 0);
    expect(stops[0]?.fact).toBe('the group is paused by an abort without a verified requester (errors)');
    const waited = await anna.run(['status', 'ingester', '--timeout', '60s']);
    expect([waited.status, waited.stdout]).toEqual([6, expect.stringContaining('by an abort without a verified requester (errors)')]);
    const retried = await anna.run(['retry', 'ingester']);
    expect([retried.status, retried.stderr]).toEqual([5, expect.stringContaining('such an abort only pauses')]);
    const [, command = ''] = /(?:kubectl rollout-group )(resume \S+)/.exec(retried.stderr) ?? [];
    expect(`kubectl rollout-group ${command}`).toBe(stops[0]?.endsWith);
    await ok(anna, ...command.split(' '));
    expect(await until('resumed', (decision) => decision.stops.length === 0)).toMatchObject({ run: { id: run?.id, outcome: 'running' } });
  });

  it('a promotion skips the soak, and no approval', async () => {
    await installStamping(controlPlane(), namespace);
    await startAgent('-intents.stamped=true');
    expect(await ok(eve, 'promote', 'ingester', '--yes', '--reason', 'hotfix')).toContain('wave canary promoted by eve');
    const { waits } = await untilHeld('approval');
    expect(waits.find(({ rule }) => rule === 'approval')?.fact).toBe('0 of 1 approvals from oncall');
    const requests = () => controlPlane().client.list(`${path}/rolloutintents`);
    const before = (await requests()).length;
    const again = await eve.run(['promote', 'ingester', '--yes']);
    expect([again.status, again.stderr]).toEqual([5, expect.stringContaining('wave rest has no soak and no gate')]);
    expect(await requests()).toHaveLength(before);
  });

  it('an approval without the group, for another run, after its end or forged never counts', async () => {
    const asking = await untilHeld('approval');
    const id = runId(asking);
    const before = await images();
    const refused = await eve.run(['approve', 'ingester']);
    expect([refused.status, refused.stderr]).toEqual([5, expect.stringContaining('an approver must belong to oncall')]);
    await write(eve, 'stranger', { action: 'approve', runId: id, wave: 'rest' });
    const body = await write(eve, 'forged', { action: 'approve', runId: id, wave: 'rest', requestedBy: forged });
    expect(body.spec?.requestedBy?.user).toBe('eve');
    await write(anna, 'other-run', { action: 'approve', runId: 'deadbeef', wave: 'rest' });
    await write(anna, 'other-wave', { action: 'approve', runId: id, wave: 'canary' });
    await write(anna, 'over', { action: 'approve', runId: id, wave: 'rest', expires: '2026-01-01T00:00:00Z' });
    // Whoever bends the word of another one speaks for themselves.
    await controlPlane()
      .clientOf(eve.identity)
      .askUntilJudged('PATCH', `${path}/rolloutintents/other-run`, { spec: { runId: id } }, merge);
    await hasHeard();
    const { waits } = await untilHeld('approval');
    expect([await images(), waits.find(({ rule }) => rule === 'approval')?.fact]).toEqual([before, '0 of 1 approvals from oncall']);
    expect((await anna.run(['explain', 'ingester'])).stdout).toMatch(/\[WAIT\] approval +0 of 1 approvals from oncall/);
  });

  it('an approval is void if the waves are edited after it, and an approval without a definition never counts', async () => {
    const before = await images();
    const id = runId(await untilHeld('approval'));
    const [canary, rest] = groupObject.spec.rollout.waves;
    const waves = (count: number, soak: string): Promise<unknown> =>
      controlPlane().client.patch(`${path}/rolloutgroups/ingester`, 'merge', {
        spec: {
          rollout: {
            waves: [
              { ...canary, after: { soak } },
              { ...rest, before: { approval: { count, from: ['oncall'] } } },
            ],
          },
        },
      });
    const says = (fact: string): Promise<Published> =>
      until(fact, (decision) => decision.waits.some((wait) => wait.rule === 'approval' && wait.fact === fact));
    await waves(2, '1h');
    await says('0 of 2 approvals from oncall');
    await write(anna, 'bare', { action: 'approve', runId: id, wave: 'rest' });
    await says('0 of 2 approvals from oncall; the approval of anna has no digest');
    await ok(anna, 'approve', 'ingester');
    await says('1 of 2 approvals from oncall');
    await waves(2, '30m');
    await says('0 of 2 approvals from oncall; anna approved an older version');
    expect((await anna.run(['explain', 'ingester'])).stdout).toContain('anna approved an older version');
    await waves(1, '1h');
    await says('0 of 1 approvals from oncall; anna approved an older version');
    expect(await images()).toBe(before);
  });

  it('a rejection blocks it, and its requester may approve', async () => {
    await ok(anna, 'reject', 'ingester', '--reason', 'errors');
    await until('rejected', ({ waits }) =>
      waits.some(({ rule, fact }) => rule === 'approval' && fact === 'anna rejected wave rest: errors'),
    );
    expect(await ok(anna, 'approve', 'ingester', '--wave', 'rest')).toContain('wave rest approved by anna');
    await ok(anna, 'status', 'ingester', '--timeout', '90s');
    expect(await images()).toBe('222222');
  });

  it('the record of the run names each request and its requester', async () => {
    const list = JSON.parse(await ok(anna, 'history', 'ingester', '-o', 'json'));
    const shown = await ok(anna, 'history', 'ingester', list.runs[0].id);
    expect(shown).toMatch(/request +.* eve: promote wave canary \(hotfix\)/);
    expect(shown).toMatch(/request +.* anna: reject wave rest \(errors\)/);
    expect(shown).toMatch(/request +.* anna: approve wave rest/);
    await expect
      .poll(() => ok(anna, 'events', 'ingester'), { timeout: 10_000 })
      .toMatch(/Normal +Approved +rolloutgroup\/ingester +wave rest approved by anna/);
  });

  it('an abort ends a run, a retry continues it, and both are reported', async () => {
    await group.setImage('example.com/server:3');
    await untilHeld('soak');
    expect(await ok(eve, 'abort', 'ingester', '--reason', 'bad WAL replay')).toContain(
      'aborted in wave canary by eve (bad WAL replay): 1 of 6 pods updated',
    );
    const { run } = await until('failed', ({ phase }) => phase === 'Failed');
    const status = await anna.run(['status', 'ingester', '--timeout', '30s']);
    expect([status.status, status.stdout]).toEqual([6, expect.stringContaining('aborted by eve (bad WAL replay)')]);
    for (const line of ['get ingester', 'status ingester --watch=false', 'explain ingester']) {
      const shown = runPlugin([...line.split(' '), '-n', namespace], { env: { KUBECONFIG: anna.identity.kubeconfig } }).stdout;
      const texts = ['the run was aborted by eve (bad WAL replay)', 'retry mimir/ingester', 'undo mimir/ingester', 'another pod template'];
      for (const text of texts) expect(shown, line).toContain(text);
    }
    expect(await ok(eve, 'abort', 'ingester')).toContain('has already ended');
    await ok(anna, 'retry', 'ingester');
    expect((await untilHeld('soak')).run).toMatchObject({ id: run?.id, outcome: 'running' });
  });

  it('an undo reverts the whole group, and blocks the reverted template', async () => {
    const minReady = (minReadySeconds: number) =>
      controlPlane().client.patch('/apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a', 'merge', { spec: { minReadySeconds } });
    await minReady(5);
    const undo = ['undo', 'ingester', '--yes', '--reason', 'memory leak'];
    await ok(eve, ...undo, '--zone', 'a');
    const left = (await until('zone a at an earlier template', ({ run }) => run?.kind === 'rollback')).run?.target;
    await until('the canary replaced', ({ waits }) => waits.some(({ fact }) => fact.includes('zone a has 1 of 2 pods available')));
    expect(await ok(eve, ...undo)).toContain('manifests in Git still contain the undone change');
    const last = await until('every template written', ({ run }) => run?.target['c'] !== left?.['c']);
    expect(last.run?.outcome).toBe('running');
    await minReady(0);
    await ok(anna, 'status', 'ingester', '--timeout', '90s');
    expect(await images()).toBe('222222');
    expect((await until('rolled back', ({ run }) => run?.outcome === 'completed')).run?.kind).toBe('rollback');
    const shown = async (...fields: readonly string[]) => {
      const { runs } = JSON.parse(await ok(anna, 'history', 'ingester', '-o', 'json'));
      return runs.slice(0, 2).map((run: Readonly<Record<string, string>>) => fields.map((field) => run[field]).join(' '));
    };
    await expect.poll(() => shown('kind', 'outcome'), { timeout: 10_000 }).toEqual(['rollback completed', 'rollout superseded']);
    const table = await ok(anna, 'history', 'ingester');
    expect(table.split('\n')[1]).toMatch(/^\w+ +rollback +server:2 in a +1 .* undo by .* \(memory leak\)$/);
    const [{ steps, zones }] = JSON.parse(await ok(anna, 'history', 'ingester', '-o', 'json')).runs;
    // The pods of the zones b and c never ran the undone template.
    expect(zones.map(({ fromImages, toImages }: ImagesOfZone) => [fromImages, toImages].map((one) => Object.values(one)))).toContainEqual([
      ['example.com/server:3'],
      ['example.com/server:2'],
    ]);
    expect(steps.map(({ pods, count }: { readonly pods: string; readonly count: number }) => [pods, count])).toEqual([['1', 1]]);
    await group.setImage('example.com/server:3');
    const { waits } = await untilHeld('undone');
    expect(waits.find(({ rule }) => rule === 'undone')?.fact).toMatch(
      /^update revision ingester-zone-a-.* was undone by eve \(memory leak\)$/,
    );
    expect(await images()).toBe('222222');
    const plan = runPlugin(['plan', '-n', namespace], { env: { KUBECONFIG: anna.identity.kubeconfig } });
    expect({ status: plan.status, text: plan.stdout.replace(/\s+/g, ' ') }).toMatchObject({
      status: 5,
      text: expect.stringMatching(
        /STOPPED eve \(memory leak\) undid the revisions .* To end it: kubectl rollout-group cancel mimir\/ingester undo\./,
      ),
    });
    expect((await anna.run(['explain', 'ingester'])).stdout).toMatch(/\[WAIT\] undone /);
    // Another template passes. It joins the run that replaced no pod, and has no cause.
    await group.setImage('example.com/server:4');
    await untilHeld('soak');
    const ends = ['rollout running ', 'rollback completed undo by eve (memory leak)'];
    await expect.poll(() => shown('kind', 'outcome', 'cause'), { timeout: 10_000 }).toEqual(ends);
    // One undo stays in force for the tests below.
    const requests = await controlPlane().client.list<KubernetesObject>(`${path}/rolloutintents`);
    await forget(requests.find((one) => /"undone":.*"zone":"a"/.test(JSON.stringify(one)))?.metadata.name ?? '');
  });

  it('a protected pod stays, and a request is cancelled by its name', async () => {
    await ok(anna, 'promote', 'ingester', '--yes');
    await ok(anna, 'protect', 'ingester', '--pod', 'ingester-zone-a-0', '--pod', 'ingester-zone-a-1', '--duration', '1h');
    await ok(anna, 'approve', 'ingester', '--wave', 'rest');
    await untilHeld('protected');
    const { items } = (await controlPlane().client.get(`${path}/rolloutintents`)) as unknown as {
      readonly items: readonly KubernetesObject[];
    };
    const name = items.find((item) => item.metadata.name.startsWith('protect.'))?.metadata.name ?? '';
    expect(await ok(anna, 'cancel', 'ingester', name)).toBe(`mimir/ingester: ${name} cancelled\n`);
    await ok(anna, 'status', 'ingester', '--timeout', '90s');
    expect(await images()).toBe('444444');
  });

  it('a wave with two approvals requires the right user at each time, and denies an approval that would not count', async () => {
    const wavesOf = (waves: readonly object[]): Promise<unknown> =>
      controlPlane().client.patch(`${path}/rolloutgroups/ingester`, 'merge', { spec: { rollout: { waves } } });
    const approvals = { before: { approval: { from: ['oncall'] } }, after: { approval: { from: ['dev'] } } };
    await wavesOf([
      { name: 'both', zones: ['a'], percent: 100, ...approvals },
      { name: 'end', zones: ['b'], percent: 100, after: approvals.after },
      { name: 'last', zones: ['c'], percent: 100 },
    ]);
    await group.setImage('example.com/server:5');
    await untilHeld('approval');
    const refusal = async (who: Person, wave: string): Promise<readonly unknown[]> => {
      const { status, stderr } = await who.run(['approve', 'ingester', '--wave', wave]);
      return [status, /(?:start|end) of wave both|counts only after/.exec(stderr)?.[0]];
    };
    expect(await refusal(eve, 'both')).toEqual([5, 'start of wave both']);
    expect(await refusal(eve, 'end')).toEqual([5, 'counts only after']);
    expect(await ok(anna, 'approve', 'ingester')).toContain('the end of wave both needs another approval from dev');
    await until('zone a replaced', ({ waits }) => waits.some(({ fact }) => fact === '0 of 1 approvals from dev'));
    expect(await images()).toBe('554444');
    expect(await refusal(anna, 'both')).toEqual([5, 'end of wave both']);
    await ok(eve, 'approve', 'ingester');
    await expect.poll(async () => (await eve.run(['approve', 'ingester', '--wave', 'end'])).status, { timeout: 30_000 }).toBe(0);
    await until('the run completed', ({ run }) => run?.outcome === 'completed');
    expect(await images()).toBe('555555');
    await wavesOf(groupObject.spec.rollout.waves);
  });

  it('an override is an exception of one rule with its requester, and never of a rule without exceptions', async () => {
    await ok(anna, 'override', 'ingester', '--rule', 'zone-gap', '--duration', '30m', '--reason', 'cost', '--yes');
    const { body } = await controlPlane().client.ask('GET', `${path}/rolloutexceptions/override.ingester.zone-gap`);
    expect(body).toMatchObject({ spec: { rule: 'zone-gap', requestedBy: { user: 'anna' } } });
    await until('the unused exception', ({ unusedExceptions }) => unusedExceptions !== undefined);
    for (const verb of ['get', 'explain'])
      expect(await ok(anna, verb, 'ingester')).toContain('rollout-group cancel mimir/ingester override.ingester.zone-gap');
    const asked = ['override', 'ingester', '--rule', 'view-complete', '--duration', '30m', '--reason', 'x', '--yes'];
    expect(await anna.run(asked)).toMatchObject({ status: 5 });
    const target = { group: 'ingester' };
    const spec = { rule: 'view-complete', target, allow: { anything: true }, reason: 'x', expires: '2099-01-01T00:00:00Z' };
    const raw = { apiVersion, kind: 'RolloutException', metadata: { name: 'raw' }, spec };
    expect(await controlPlane().client.askUntilJudged('POST', `${path}/rolloutexceptions`, raw)).toMatchObject({ status: 422 });
    await ok(anna, 'cancel', 'ingester', 'override.ingester.zone-gap');
    await until('no exception', ({ unusedExceptions }) => unusedExceptions === undefined);
  });

  describe('while no step is due', () => {
    const bundle = (line: string) => {
      const { status, stdout, stderr } = runPlugin([...line.split(' '), '-n', namespace], {
        env: { KUBECONFIG: anna.identity.kubeconfig },
      });
      expect(status, `${line}: ${stdout}${stderr}`).toBe(0);
      return stdout.replace(/\s+/g, ' ');
    };
    const untilStops = (...rules: readonly string[]) =>
      until(`stopped by ${rules.join(', ')}`, ({ stops }) => stops.map(({ rule }) => rule).join() === rules.join());
    const policy = (name: string, spec: object) => ({
      apiVersion,
      kind: 'RolloutPolicy',
      metadata: { name, namespace },
      spec: { targets: { all: true }, ...spec },
    });
    const freeze = { from: '2020-01-01T00:00:00Z', to: '2099-01-01T00:00:00Z' };

    it.each([
      [
        'undone',
        'eve (memory leak) undid the revisions ',
        () => write(eve, 'undo.later', { action: 'undo', reason: 'memory leak', undone: [{ zone: 'a', revision: 'ingester-zone-a-2' }] }),
      ],
      ['paused', 'is paused by anna (INC-441), until 20', () => ok(anna, 'pause', 'ingester', '--reason', 'INC-441', '--duration', '1h')],
      ['paused', 'zone a is paused by anna (disk)', () => ok(anna, 'pause', 'ingester', '--zone', 'a', '--reason', 'disk')],
      ['paused', 'is paused by an abort of eve that names no run', () => write(eve, 'abort.all', { action: 'abort' })],
      [
        'protected',
        'anna (restore) protects zone b, until 20',
        () => ok(anna, 'protect', 'ingester', '--zone', 'b', '--duration', '1h', '--reason', 'restore'),
      ],
      [
        'protected',
        'anna (restore) protects pods 0-1 of zone a, until 20',
        () =>
          ok(
            anna,
            'protect',
            'ingester',
            '--pod',
            'ingester-zone-a-0',
            '--pod',
            'ingester-zone-a-1',
            '--duration',
            '1h',
            '--reason',
            'restore',
          ),
      ],
      [
        'window',
        'a deny window blocks rollout (limit: freeze); windows allow the action from 2099-01-01',
        () =>
          controlPlane().client.create(
            `${path}/rolloutpolicies`,
            policy('calendar', { windows: [{ name: 'freeze', kind: 'deny', actions: ['rollout'], ranges: [freeze] }] }),
          ),
      ],
      [
        'storage/moves',
        'the storage moves',
        () =>
          controlPlane().client.create(
            `${path}/rolloutpolicies`,
            policy('storage', { rules: [{ name: 'moves', actions: ['rollout'], effect: 'hold', message: 'the storage moves' }] }),
          ),
      ],
      [
        'disks/zone',
        'the disks of zone a are replaced',
        () => {
          const when = { '==': [{ var: 'target.zone' }, 'a'] };
          const message = 'the disks of zone a are replaced';
          const rules = [{ name: 'zone', actions: ['rollout'], effect: 'hold', when, message }];
          return controlPlane().client.create(`${path}/rolloutpolicies`, policy('disks', { rules }));
        },
      ],
    ])('%s is shown everywhere, with requester, reason, end and the command that ends it: %s', async (rule, fact, stop) => {
      await stop();
      // Right after it the agent may not have published anything.
      expect(bundle('explain ingester')).not.toContain('Nothing is wrong');
      const { stops } = await untilStops(rule);
      const endsWith = stops[0]?.endsWith ?? '';
      for (const verb of [['get'], ['status', '--watch=false'], ['explain']]) {
        const shown = (await ok(anna, ...verb, 'ingester')).replace(/\s+/g, ' ');
        expect(shown, verb[0]).toContain(fact);
        expect(shown, verb[0]).toContain(endsWith);
      }
      expect(await ok(anna, 'get')).toMatch(new RegExp(` Done .*${rule}: `));
      const [object] = await controlPlane().client.list<GroupWithStatus>(`${path}/rolloutgroups`);
      expect(JSON.stringify(object?.status)).toMatch(/"status":"True","type":"Stopped"/);
      expect((await agent?.ask('/metrics'))?.body).toMatch(new RegExp(`^rollout_group_stops\\{.*rule="${rule}".*\\} 1$`, 'm'));
      // In this process: it answers the webhook, so it may not wait for another one.
      const [, , ...words] = endsWith.replace('REASON', 'cost').split(' ');
      await ok(anna, ...words, ...(words[0] === 'override' ? ['--yes'] : []));
      await untilStops();
      expect(bundle('explain ingester')).toContain('Nothing is left to do. ');
    });

    it('a zone that its settings pause is shown with the object to edit', async () => {
      const zones = groupObject.spec.members.zones.map((zone) => ({ ...zone, ...(zone.name === 'c' ? { paused: true } : {}) }));
      await controlPlane().client.patch(`${path}/rolloutgroups/ingester`, 'merge', { spec: { members: { zones } } });
      await untilStops('paused');
      for (const line of ['get ingester', 'status ingester --watch=false', 'explain ingester']) {
        expect(bundle(line)).toContain('zone c is paused by its settings');
        expect(bundle(line)).toContain('kubectl edit rolloutgroup ingester -n mimir');
      }
      expect(bundle('resume ingester')).toContain('resume does not end this block. To end it: kubectl edit rolloutgroup ingester -n mimir');
      const { zones: written } = groupObject.spec.members;
      await controlPlane().client.patch(`${path}/rolloutgroups/ingester`, 'merge', { spec: { members: { zones: written } } });
      await untilStops();
    });
  });
});
