import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../engine/decide/decide.ts';
import type { AdmissionRequest } from '../../engine/decision.ts';
import { violationsOf } from '../../engine/invariants/invariants.ts';
import { judge } from '../../engine/judge/judge.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { manifests, planInput } from '../kit/manifests.ts';
import { type RandomCase, randomCase } from '../kit/random-groups.ts';
import { commitSeed, shareOf } from '../kit/share.ts';

const greatest = 2 ** 31 - 1;
/** The values at the bounds of the number types of Kubernetes, JSON and JavaScript, and some that no field accepts. */
const extremes = [0, -1, 0.5, 5001, greatest, -greatest - 1, greatest + 1, Number.MAX_SAFE_INTEGER, 1e300];

type Path = readonly (string | number)[];

/** Returns the path of each number in the value. Of the entries of a list, only the first and the last count. */
function numberPaths(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value === 'number') return [path];
  if (typeof value !== 'object' || value === null) return [];
  const entries = Object.entries(value);
  const ends = Array.isArray(value) ? [...new Set([entries[0], entries.at(-1)])].flatMap((entry) => (entry ? [entry] : [])) : entries;
  return ends.flatMap(([key, field]) => numberPaths(field, [...path, Array.isArray(value) ? Number(key) : key]));
}

function withNumber<Value>(value: Value, [key, ...rest]: Path, number: number): Value {
  if (key === undefined) return number as Value;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>;
  copy[key] = withNumber(copy[key], rest, number);
  return copy as Value;
}

/** Returns the name of the field: the path without indices and names of zones. */
function fieldOf(path: Path): string {
  return path.filter((key) => typeof key === 'string').join('.');
}

function requestsFor({ group, snapshot }: RandomCase): readonly AdmissionRequest[] {
  const [zone] = group.zones;
  const set = snapshot.statefulSets.find(({ name }) => name === zone?.statefulSet);
  if (zone === undefined || set === undefined) return [];
  const target = { namespace: group.namespace, statefulSet: set.name, dryRun: false };
  const changes = [0, set.replicas - 1, greatest].map((to) => ({ from: set.replicas, to }));
  return [
    ...changes.map((change): AdmissionRequest => ({ kind: 'scale', ...target, ...change, via: 'scale' })),
    ...changes.map(
      (change): AdmissionRequest => ({
        kind: 'update',
        ...target,
        ...change,
        isTemplateChanged: true,
        strategy: set.updateStrategy,
        partition: greatest,
        firstOrdinal: greatest,
        via: 'update',
      }),
    ),
    { kind: 'deleteStatefulSet', ...target },
    { kind: 'deletePod', namespace: group.namespace, pod: `${set.name}-${greatest}`, dryRun: false },
  ];
}

describe('a number at its extremes', () => {
  it('in a snapshot or a definition causes no error, no long decision and no violation', () => {
    const first = commitSeed % 100_000;
    const seen = new Map<string, { readonly one: RandomCase; readonly path: Path }>();
    for (let seed = first; seed < first + 300; seed += 1) {
      const one = randomCase(seed);
      for (const path of numberPaths({ snapshot: one.snapshot, group: one.group })) {
        if (!seen.has(fieldOf(path))) seen.set(fieldOf(path), { one, path });
      }
    }
    expect(seen.size).toBeGreaterThan(60);
    const found: string[] = [];
    for (const [field, { one, path }] of shareOf([...seen], 3)) {
      const usual = JSON.stringify(decideGroup(one.snapshot, one.group)).length;
      for (const number of extremes) {
        const { snapshot, group } = withNumber({ snapshot: one.snapshot, group: one.group }, path, number);
        const given = { ...one, group, snapshot: { ...snapshot, groups: [group] } };
        const what = `${field} ${number} of seed ${one.seed}`;
        try {
          const decision = decideGroup(given.snapshot, group);
          const { length } = JSON.stringify(decision);
          if (length > usual * 3 + 200_000) found.push(`${what}: a decision of ${length} characters`);
          // The readers refuse fractions and negative numbers, so no invariant speaks of them.
          if (Number.isSafeInteger(number) && number >= 0) {
            found.push(...violationsOf({ ...given, decision }).map((violation) => `${what}: ${violation}`));
          }
          for (const request of requestsFor(given)) judge(given.snapshot, request);
        } catch (error) {
          found.push(`${what}: ${String(error)}`);
        }
      }
    }
    expect(found).toEqual([]);
  });

  it.each(['replicas', 'minReadySeconds', 'revisionHistoryLimit', 'ordinals.start', 'updateStrategy.rollingUpdate.partition'])(
    'as spec.%s of a manifest causes no error, and the plan is bounded',
    (field) => {
      const specOf = (number: number): object => {
        const [first = '', ...rest] = field.split('.');
        const nested = rest.reduceRight<unknown>((value, key) => ({ [key]: value }), number);
        return first === 'updateStrategy' ? { [first]: { type: 'RollingUpdate', ...(nested as object) } } : { [first]: nested };
      };
      for (const number of extremes) {
        const desired = manifests({ spec: specOf(number), image: 'grafana/mimir:2' }, ['a']);
        const [plan] = planGroups(planInput({ desired: [...desired, ...manifests({}, ['b', 'c'])] })).groups;
        expect(JSON.stringify(plan).length, `${field} ${number}`).toBeLessThan(2_000_000);
      }
    },
  );
});
