// The examples do what their PolicyTests say, are clean, and can be planned.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decide } from '../../engine/decide/decide.ts';
import { snapshotFromManifests } from '../../engine/observe/manifests.ts';
import { defaultAssumptions, type GroupPlan } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { coverageOf } from '../../engine/policy-test/policy-test.ts';
import { verbs } from '../../plugin/verbs/all.ts';
import type { PolicyBundle } from '../../policies/definition.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { loadPolicies } from '../../policies/load.ts';
import { bundleOf, exampleNames, filesBelow, runExample, testsOf } from './examples.ts';

const nowMs = Date.parse('2026-01-15T10:00:00Z');

interface Contents {
  readonly bundle: PolicyBundle;
  readonly current: readonly unknown[];
}

function contentsOf(...paths: readonly string[]): Contents {
  const load = loadPolicies(paths.flatMap(filesBelow));
  return { bundle: bundleOf(load.documents, load), current: load.manifests.map(({ value }) => value) };
}

function planOf({ bundle, current }: Contents, desired: readonly unknown[]): GroupPlan | undefined {
  const input = { ...bundle, policyDigest: '', current, desired, assumptions: defaultAssumptions, nowMs };
  return planGroups(input).groups[0];
}

/** The manifests of a folder with another tag on every image. */
function withNewVersion(path: string): readonly unknown[] {
  const files = filesBelow(path).map(({ name, text }) => ({ name, text: text.replaceAll(/image: (\S+)$/gm, 'image: $1-next') }));
  return loadPolicies(files).manifests.map(({ value }) => value);
}

/** The zones in the order in which they roll, each once; a zone that comes twice would show. */
function rolledZones(plan: GroupPlan | undefined): readonly string[] {
  const rolled = (plan?.waves ?? []).flatMap((wave) => wave.steps.filter((step) => step.kind === 'roll').map((step) => step.zone ?? ''));
  return rolled.filter((zone, index) => zone !== rolled[index - 1]);
}

describe.each(exampleNames)('examples/%s', (name) => {
  const folder = `examples/${name}`;
  const tests = testsOf(name);
  const native = tests.filter((test) => test.load.documents.length > 0);
  const contents = contentsOf(`${folder}/policies`, `${folder}/manifests`);

  it('passes every case of its PolicyTests', () => {
    const failed = tests.flatMap((test) => runExample(test).filter(({ passed }) => !passed));
    expect(failed.map(({ name: failing, problems, message }) => ({ failing, problems, message }))).toEqual([]);
    expect(native.length).toBeGreaterThan(0);
  });

  it('has seen every rule block and pass', () => {
    const seen = coverageOf(
      contents.bundle,
      native.flatMap((test) => runExample(test)),
    );
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter(({ held, passed }) => held.length === 0 || passed.length === 0).map(({ rule }) => rule)).toEqual([]);
  });

  it('has no error and no warning', () => {
    const { findings } = lintPolicies(['policies', 'tests', 'manifests'].flatMap((part) => filesBelow(`${folder}/${part}`)));
    expect(findings.filter(({ severity }) => severity !== 'notice')).toEqual([]);
  });

  it('has nothing to do without a change', () => {
    const { snapshot } = snapshotFromManifests(contents.current, { nowMs, groups: contents.bundle.groups });
    const decision = decide({ ...snapshot, ...contents.bundle });
    expect(decision.groups.map(({ group, outcome, actions }) => ({ group, outcome, actions }))).toEqual([
      { group: contents.bundle.groups[0]?.name, outcome: 'done', actions: [] },
    ]);
  });

  it('rolls a new version zone after zone, to the end and without risk', () => {
    const plan = planOf(contents, withNewVersion(`${folder}/manifests`));
    const zones = contents.bundle.groups[0]?.zones.map((zone) => zone.name);
    expect({ outcome: plan?.outcome, zones: rolledZones(plan), risks: plan?.risks }).toEqual({ outcome: 'complete', zones, risks: [] });
  });

  it('has a README whose commands name verbs and files that exist', () => {
    const commands = [...readFileSync(`${folder}/README.md`, 'utf8').matchAll(/^kubectl rollout-group (.+)$/gm)].map(
      (match) => match[1] ?? '',
    );
    expect(commands.length).toBeGreaterThan(2);
    const words = commands.map((command) => command.split(/\s+/));
    expect(words.map(([verb]) => verb).filter((verb) => !verbs.some((known) => known.name === verb))).toEqual([]);
    expect(words.flat().filter((word) => word.startsWith('examples/') && !existsSync(word))).toEqual([]);
  });
});

describe('the changed manifests of examples', () => {
  it('shrink the Mimir ingesters one zone after the other, 13 hours apart and 13 hours prepared', () => {
    const contents = contentsOf('examples/mimir-ingester/policies', 'examples/mimir-ingester/manifests');
    const plan = planOf(contents, contentsOf('examples/mimir-ingester/manifests-next').current);
    const steps = (plan?.waves ?? []).flatMap((wave) => wave.steps);
    const shrinks = steps.filter((step) => step.kind === 'scaleDown');
    expect(shrinks.map(({ zone, from, to, startSeconds }) => `${zone} ${from} to ${to} after ${startSeconds / 3600} h`)).toEqual([
      'a 6 to 5 after 13 h',
      'b 6 to 5 after 39 h',
      'c 6 to 5 after 65 h',
    ]);
  });

  it('roll the store-gateways', () => {
    const contents = contentsOf('examples/mimir-store-gateway/policies', 'examples/mimir-store-gateway/manifests');
    const plan = planOf(contents, contentsOf('examples/mimir-store-gateway/manifests-next').current);
    expect({ outcome: plan?.outcome, restarts: plan?.totals.restarts }).toEqual({ outcome: 'complete', restarts: 12 });
  });
});

describe('examples/mimir-ingester/manifests-adopted', () => {
  it('is the group of the policy file, without the file', () => {
    const byFile = contentsOf('examples/mimir-ingester/policies', 'examples/mimir-ingester/manifests');
    const byLabels = contentsOf('examples/mimir-ingester/manifests-adopted');
    const settings = ({ bundle }: Contents) =>
      bundle.groups.map(({ name, zones }) => ({
        name,
        zones: zones.map(({ statefulSet, follows, replicas, maxUnavailable, betweenZonesMs, delayed, prepare, followersWaitFor }) => ({
          statefulSet,
          follows,
          source: replicas.kind,
          maxUnavailable,
          betweenZonesMs,
          // Adoption reads the delay where the original does, on the zone that is mirrored.
          delayedMs: follows === undefined ? delayed?.afterMs : undefined,
          preparePath: prepare?.endpoint.path,
          waits: follows === undefined ? undefined : followersWaitFor,
        })),
      }));
    expect(settings(byLabels)).toEqual(settings(byFile));
  });

  it('rolls the same pods zone after zone', () => {
    const contents = contentsOf('examples/mimir-ingester/manifests-adopted');
    const plan = planOf(contents, withNewVersion('examples/mimir-ingester/manifests-adopted'));
    expect({ outcome: plan?.outcome, zones: rolledZones(plan) }).toEqual({ outcome: 'complete', zones: ['a', 'b', 'c'] });
  });
});
