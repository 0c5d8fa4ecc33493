import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { annotationKeys, labelKeys } from '../../../policies/adopt/keys.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { explainCode } from '../../../policies/findings/codes.ts';
import { formatText } from '../../../policies/format.ts';
import { loadPolicies } from '../../../policies/load.ts';
import { resolvePolicies } from '../../../policies/resolve/resolve.ts';
import { writeDocument } from '../../../policies/write.ts';
import { statefulSet } from './kit.ts';

const zone = fc.constantFrom('a', 'b', 'c', 'd');

/** Values of every label and annotation: some that mean something, some that only look so. */
const labels = fc.record(
  {
    [labelKeys.noDownscale]: fc.constantFrom('true', 'True', ''),
    [labelKeys.prepareDownscale]: fc.constantFrom('true', 'false'),
    [labelKeys.minTimeBetweenZones]: fc.constantFrom('12h', '90m', '1d', '-5s', ''),
  },
  { requiredKeys: [] },
);
const annotations = fc.record(
  {
    [annotationKeys.maxUnavailable]: fc.constantFrom('1', '50', '10%', '0', ' 3 ', 'x'),
    [annotationKeys.leader]: fc.oneof(
      zone.map((name) => `ingester-zone-${name}`),
      fc.constantFrom('', 'stranger'),
    ),
    [annotationKeys.upscaleOnlyWhenLeaderReady]: fc.constantFrom('true', 'yes'),
    [annotationKeys.lastDownscale]: fc.constant('2026-01-01T00:00:00Z'),
    [annotationKeys.preparePath]: fc.constantFrom('ingester/prepare', '/x y', 'a%zz', ''),
    [annotationKeys.preparePort]: fc.constantFrom('80', 'http', ''),
    [annotationKeys.mirrorName]: fc.constantFrom('ingester', 'on', ''),
    [annotationKeys.mirrorKind]: fc.constantFrom('ReplicaTemplate', 'Y'),
    [annotationKeys.mirrorApiVersion]: fc.constantFrom('v1', 'a/b', 'a/b/c', ''),
    [annotationKeys.mirrorWriteBack]: fc.constantFrom('true', '0', 'no'),
    [annotationKeys.delay]: fc.constantFrom('1h', '0', '1.5h', ''),
    [annotationKeys.delayedUrl]: fc.constantFrom('http://pod:8080/p?x=1', 'https://u:p@pod/#f', '/relative', 'http://pod:x', ''),
    [annotationKeys.forceReplicas]: fc.constantFrom('0', '+3', '-1', 'x'),
    [annotationKeys.paused]: fc.constantFrom('true', '1'),
  },
  { requiredKeys: [] },
);
const member = fc
  .record({
    zone,
    group: fc.constantFrom('ingester', '', 'Upper_Case', 'on'),
    labels,
    annotations,
    serviceName: fc.constantFrom('svc', ''),
  })
  .map(({ zone: name, ...rest }) => statefulSet({ name: `ingester-zone-${name}`, ...rest }));

function withoutSources(groups: readonly GroupDefinition[]): readonly unknown[] {
  return groups.map(({ sources: _, ...group }) => group);
}

describe('adopted groups, written as files and read back', () => {
  it('are equal for the engine, with any labels and annotations', () => {
    fc.assert(
      fc.property(fc.array(member, { minLength: 1, maxLength: 8 }), (sets) => {
        const adoption = adoptGroups(sets);
        const text = adoption.groups.map((one) => writeDocument(one)).join('---\n');
        const loaded = loadPolicies([{ name: 'groups.yaml', text }]);
        expect(loaded.findings).toEqual([]);
        const byFiles = resolvePolicies(loaded.documents).bundle.groups;
        const byAdoption = resolvePolicies([], { adoption }).bundle.groups;
        expect(withoutSources(byFiles)).toEqual(withoutSources(byAdoption));
        expect(formatText(text)).toBe(text);
      }),
      { numRuns: 60, seed: 20_260_115 },
    );
  });

  it('are the same bytes in any order of the StatefulSets', () => {
    fc.assert(
      fc.property(fc.array(member, { maxLength: 8 }), fc.nat(), (sets, seed) => {
        const shuffled = sets.map((set, index) => ({ set, rank: (index * 7919 + seed) % 31 })).sort((a, b) => a.rank - b.rank);
        expect(JSON.stringify(adoptGroups(shuffled.map(({ set }) => set)))).toBe(JSON.stringify(adoptGroups(sets)));
      }),
      { numRuns: 60, seed: 20_260_115 },
    );
  });

  it('have findings that are all explained', () => {
    fc.assert(
      fc.property(fc.array(member, { maxLength: 8 }), (sets) => {
        expect(adoptGroups(sets).findings.filter(({ code }) => explainCode(code) === undefined)).toEqual([]);
      }),
      { numRuns: 50, seed: 20_260_115 },
    );
  });
});
