// A tool that keeps objects as Git has them applies our configuration again and again while the agent narrows it: nothing that is protected passes meanwhile.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { installation } from '../../install/installation.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { addressed, eventually, untilTrusted } from '../control-plane/webhook.ts';
import { optionsOf } from '../install/given.ts';
import { apply, createWorld, forms, merge, type Outcome, replicas, setObject, setsOf, type World, write } from './kit.ts';
import { kubectl } from './kit-attempts.ts';
import { member, type Outage, outageOf, passed } from './kit-outage.ts';

interface Row {
  readonly name: string;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

interface Managed extends KubernetesObject {
  readonly metadata: KubernetesObject['metadata'] & {
    readonly managedFields: readonly { readonly manager: string; readonly operation: string; readonly fieldsV1: object }[];
  };
}

type Configuration = KubernetesObject & { readonly webhooks: readonly Row[] };

let cp: ControlPlane;
let admin: ApiClient;
let world: World;
let outage: Outage;

const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/rollout-group';
const folder = mkdtempSync(join(tmpdir(), 'rollout-group-reapplied-'));
const file = join(folder, 'configuration.json');
const rounds = 3;

/** As it was installed, without a word about what the agent adds. */
function manifest(): object {
  const found = installation(optionsOf()).find(({ kind }) => kind === 'ValidatingWebhookConfiguration');
  if (found === undefined) throw new Error('nothing is installed');
  return { ...found, ...addressed(found, world.front) };
}

async function done(outcome: Promise<Outcome>): Promise<void> {
  const { said, isRefused } = await outcome;
  if (isRefused) throw new Error(`the configuration was not applied: ${said}`);
}

/** By whom the manifest is applied, and whether it takes out what the agent has added. */
const tools: readonly (readonly [what: string, isReplacing: boolean, applyAgain: () => Promise<void>])[] = [
  [
    'server-side apply',
    false,
    () => done(write(admin, 'PATCH', `${path}?fieldManager=kustomize-controller&force=true`, manifest(), apply)),
  ],
  ['kubectl apply', false, () => done(kubectl(cp, ['apply', '-f', file]))],
  ['kubectl replace', true, () => done(kubectl(cp, ['replace', '-f', file]))],
];

const rowsOf = async (): Promise<readonly Row[]> => (await admin.get<Configuration>(path)).webhooks;
const isOfAgent = ({ name, matchConditions = [] }: Row): boolean =>
  name.includes('-of-others.') || matchConditions.some((condition) => condition.name === 'is-a-member-now');

interface Attack {
  /** Resolves once every way was tried whole, from now on. */
  readonly untilTried: () => Promise<void>;
  /** The answer is everything that was said. */
  readonly stop: () => Promise<readonly Outcome[]>;
}

/** What is protected is attacked again and again, until it is told to stop. */
function attacking(): Attack {
  let isOver = false;
  let tried = 0;
  const outcomes: Outcome[] = [];
  const running = (async () => {
    while (!isOver) {
      const asked = forms.flatMap((form) => [
        write(admin, 'PATCH', `${setsOf(form)}/${member}`, replicas(2), merge),
        write(admin, 'PATCH', `${setsOf(form)}/${member}/scale`, replicas(2), merge),
        write(admin, 'DELETE', `${setsOf(form)}/${member}?dryRun=All`),
      ]);
      outcomes.push(...(await Promise.all(asked)));
      tried += 1;
    }
  })();
  return {
    untilTried: async () => {
      const before = tried;
      await eventually(
        'every way tried',
        async () => tried,
        (now) => now >= before + 2,
      );
    },
    stop: async () => {
      isOver = true;
      await running;
      return outcomes;
    },
  };
}

describeOnControlPlane(
  'our configuration, applied again as it was installed',
  (controlPlane) => {
    beforeAll(async () => {
      cp = controlPlane();
      admin = cp.client;
      outage = outageOf(admin, { world: () => world, elsewhere: 'elsewhere' });
      world = await createWorld(cp, { namespaces: ['native', 'compat'] });
      await admin.create('/api/v1/namespaces', { metadata: { name: 'elsewhere' } });
      for (const form of forms) await world.createGroup(form, form, { name: 'ingester' });
      await admin.create(setsOf('native'), setObject('many', 'many', { replicas: 2 }));
      writeFileSync(file, JSON.stringify(manifest()));
      await outage.untilWell();
      await outage.untilNarrowed();
    });
    afterAll(async () => {
      rmSync(folder, { recursive: true, force: true });
      await world.close();
    });

    const untilAsBefore = async (): Promise<void> => {
      await untilTrusted(admin);
      await outage.untilNarrowed();
    };
    const free = (): Promise<Outcome> => write(admin, 'PATCH', `${setsOf('native')}/many?dryRun=All`, replicas(1), merge);

    it('names the fields of the agent, so that other tools can skip them', async () => {
      const { metadata } = await admin.get<Managed>(path);
      const own = metadata.managedFields.filter(({ fieldsV1 }) => JSON.stringify(fieldsV1).includes('is-a-member-now'));
      expect(own.map(({ manager, operation }) => `${manager} ${operation}`)).toEqual(['rollout-group-agent Update']);
    });

    it.each(tools)('by %s is narrowed again, and no protected request passes meanwhile', async (_what, isReplacing, applyAgain) => {
      const attack = attacking();
      const before = (await rowsOf()).filter(isOfAgent).length;
      expect(before).toBeGreaterThan(0);
      for (let round = 0; round < rounds; round += 1) {
        await applyAgain();
        if (!isReplacing) {
          // Nothing that the agent has written is taken out, so that what nobody protects passes all the time.
          expect((await rowsOf()).filter(isOfAgent)).toHaveLength(before);
          expect(await free()).toMatchObject(passed);
        }
        await untilAsBefore();
        expect((await rowsOf()).filter(isOfAgent)).toHaveLength(before);
        await attack.untilTried();
      }
      const outcomes = await attack.stop();
      expect(outcomes.length).toBeGreaterThanOrEqual(rounds * 2 * 6);
      expect(outcomes.filter(({ isRefused }) => !isRefused)).toEqual([]);
      await outage.expectIntact();
      await outage.untilWell();
      expect(await free()).toMatchObject(passed);
    });

    it.each(tools)('by %s while no webhook answers denies requests about protected objects', async (_what, isReplacing, applyAgain) => {
      world.front.leadTo();
      world.front.cut();
      try {
        await applyAgain();
        const expectRefused = async (): Promise<void> => {
          for (const form of forms) {
            for (const target of [member, `${member}/scale`]) {
              const { said, isRefused } = await write(admin, 'PATCH', `${setsOf(form)}/${target}`, replicas(2), merge);
              expect(isRefused, said).toBe(true);
            }
          }
        };
        await expectRefused();
        // It cannot be asked, but it still writes. Until it has, the rows are about everything in a namespace that is opted in.
        if (isReplacing) await untilAsBefore();
        await eventually('what nobody protects passes', free, ({ isRefused }) => !isRefused);
        await expectRefused();
      } finally {
        world.front.leadTo(world.first.port);
      }
      await untilAsBefore();
      await outage.expectIntact();
      await outage.untilWell();
      expect(await free()).toMatchObject(passed);
    });
  },
  { zones: ['zone-a'] },
);
