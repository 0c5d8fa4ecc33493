import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GroupPlan, Plan, PlannedStep } from '../../engine/plan/document.ts';
import { planSchema } from '../../scripts/generated/plan-schema.ts';
import { randomFrom } from '../kit/random.ts';
import { runPlugin } from '../plugin/process.ts';

/** Manifests that Mimir's own tools generated. They are not part of this repository. */
const real = resolve('../shared/real');
const inputs = [
  { name: 'mimir-jsonnet', set: ['image=grafana/mimir:2.12.0'], groups: ['ingester', 'store-gateway'] },
  { name: 'mimir-helm-multizone', set: ['image=grafana/mimir:2.12.0'], groups: ['alertmanager', 'ingester', 'store-gateway'] },
];
const missing = inputs.filter(({ name }) => !existsSync(join(real, name)));

if (missing.length > 0) {
  const where = missing.map(({ name }) => join(real, name)).join(' and ');
  it.skipIf(true)(`SKIPPED: no real manifest was tested, for ${where} is not there`, () => {});
  process.stderr.write(`SKIPPED: no real manifest was tested, for ${where} is not there\n`);
}

for (const input of inputs) {
  for (const isShuffled of [false, true]) {
    describe.skipIf(missing.length > 0)(`${input.name}${isShuffled ? ' with its documents shuffled' : ''}`, () => {
      const folder = mkdtempSync(join(tmpdir(), 'rollout-group-real-'));
      const manifests = join(folder, 'manifests');
      const policies = join(folder, 'policies');
      beforeAll(() => {
        cpSync(join(real, input.name), manifests, { recursive: true });
        if (isShuffled) shuffleDocuments(manifests);
        expect(runPlugin(['init', '--from-dir', manifests, '--out', policies])).toMatchObject({ status: 0 });
      });
      afterAll(() => rmSync(folder, { recursive: true, force: true }));
      const planArgs = (current: string, ...more: readonly string[]): readonly string[] => [
        'plan',
        '--current',
        current,
        ...input.set.flatMap((value) => ['--set', value]),
        '-o',
        'json',
        ...more,
      ];
      let planned: ReturnType<typeof runPlugin> | undefined;
      /** Returns the plan of the manifests, which is made once. */
      const plan = () => {
        planned ??= runPlugin(planArgs(manifests));
        return planned;
      };

      it('becomes policy files in which lint finds no error and no warning', () => {
        expect(readdirSync(policies).sort()).toEqual(input.groups.map((group) => `${group}.yaml`));
        const lint = runPlugin(['lint', policies, '-o', 'json']);
        const { findings } = JSON.parse(lint.stdout) as { findings: readonly { severity: string }[] };
        expect(findings.filter(({ severity }) => severity !== 'notice')).toEqual([]);
        expect(lint.status).toBe(0);
      });

      it('plans byte for byte alike by adoption and by those files, once source positions are dropped', () => {
        const byAdoption = plan();
        const byFiles = runPlugin(planArgs(manifests, '-f', policies));
        expect([byAdoption.status, byFiles.status]).toEqual([0, 0]);
        expect(withoutSources(byFiles.stdout)).toBe(withoutSources(byAdoption.stdout));
      });

      it('has the same plan again, in any order of the documents', () => {
        const again = runPlugin(planArgs(manifests)).stdout;
        expect(plan().stdout).toBe(again);
        const original = runPlugin(planArgs(join(real, input.name))).stdout;
        expect(withoutSources(again)).toBe(withoutSources(original));
      });

      it('has a plan that fits the published schema', () => {
        const validate = new Ajv2020({ strict: false, formats: { 'date-time': true } }).compile(planSchema);
        const isValid = validate(JSON.parse(plan().stdout));
        expect(validate.errors ?? []).toEqual([]);
        expect(isValid).toBe(true);
      });

      it('rolls zone after zone, never two, and honours the annotation rollout-max-unavailable', () => {
        const { groups } = JSON.parse(plan().stdout) as Plan;
        expect(groups.map(({ group }) => group)).toEqual(input.groups);
        for (const group of groups) checkZones(group);
      });
    });
  }
}

describe.skipIf(missing.length > 0)('the assumptions of a plan', () => {
  const manifests = join(real, 'mimir-jsonnet');

  it('are in the plan, come from a file, and double the rolling part when they double', () => {
    const at = (drain: number, start: number): number => {
      const folder = mkdtempSync(join(tmpdir(), 'rollout-group-assumptions-'));
      const file = join(folder, 'assumptions.yaml');
      writeFileSync(
        file,
        `pods: { drain: { p50Seconds: ${drain}, p90Seconds: ${drain} }, start: { p50Seconds: ${start}, p90Seconds: ${start} } }\n`,
      );
      const { stdout } = runPlugin([
        'plan',
        '--current',
        manifests,
        '--set',
        'image=grafana/mimir:2.12.0',
        '--assumptions',
        file,
        '-o',
        'json',
      ]);
      rmSync(folder, { recursive: true });
      const plan = JSON.parse(stdout) as Plan;
      expect(plan.assumptions.pods.start.p50Seconds).toBe(start);
      return rolls(plan.groups[0]).reduce((sum, step) => sum + (step.p50Seconds ?? 0), 0);
    };
    const [startOnly, both] = [at(0, 60), at(30, 60)];
    expect(at(0, 120)).toBe(2 * startOnly);
    expect(at(60, 120)).toBe(2 * both);
    expect(at(30, 120) - both).toBe(startOnly);
  });
});

function rolls(group: GroupPlan | undefined): readonly PlannedStep[] {
  return (group?.waves ?? []).flatMap((wave) => wave.steps).filter((step) => step.kind === 'roll');
}

function checkZones(group: GroupPlan): void {
  const steps = rolls(group);
  expect(steps.map((step) => step.zone)).toEqual(['a', 'b', 'c']);
  for (const [index, step] of steps.entries()) {
    const before = steps[index - 1];
    if (before !== undefined) expect(step.startSeconds).toBeGreaterThanOrEqual(before.startSeconds + (before.p50Seconds ?? Number.NaN));
    const limit = step.rules.find((answer) => answer.rule === 'zone-budget')?.limit;
    expect(Number(limit)).toBe(group.group === 'alertmanager' ? 2 : 50);
    expect(step.atOnce).toBe(Math.min(Number(limit), step.pods.length));
  }
}

function withoutSources(text: string): string {
  return JSON.stringify(
    JSON.parse(text, (key, value) => (key === 'source' ? undefined : value)),
    null,
    2,
  );
}

/** Every file's documents in another order, and the files renamed, so that their order changes too. */
function shuffleDocuments(folder: string): void {
  const random = randomFrom(7);
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (!statSync(file).isFile()) continue;
    const documents = readFileSync(file, 'utf8')
      .split(/^---.*$/m)
      .map((text) => text.trim())
      .filter((text) => text !== '');
    const shuffled = documents.map((text) => ({ text, rank: random.next() })).sort((a, b) => a.rank - b.rank);
    writeFileSync(join(folder, `${random.below(1000)}-${name}`), shuffled.map(({ text }) => `---\n${text}\n`).join(''));
    rmSync(file);
  }
}
