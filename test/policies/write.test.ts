import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import { annotationKeys } from '../../policies/adopt/keys.ts';
import { type PolicyDocument, schemas } from '../../policies/schema/kinds.ts';
import { writeDocument } from '../../policies/write.ts';
import { statefulSet } from './adopt/kit.ts';
import { sampleDocuments } from './sample-documents.ts';

function readBack(text: string): PolicyDocument {
  const value = parse(text);
  return schemas[value.kind as PolicyDocument['kind']].parse(value) as PolicyDocument;
}

describe('a written document', () => {
  it.each(sampleDocuments)('$kind reads back as the same document', (document) => {
    expect(readBack(writeDocument(document))).toEqual(document);
  });

  it('has the fields in the order of the schema and omits defaults', () => {
    const { groups } = adoptGroups([
      statefulSet({ name: 'ingester-zone-b', annotations: { [annotationKeys.leader]: 'ingester-zone-a' } }),
      statefulSet({ annotations: { [annotationKeys.maxUnavailable]: '10%', [annotationKeys.paused]: 'true' } }),
    ]);
    expect(groups.map((group) => writeDocument(group)).join('')).toMatchInlineSnapshot(`
      "apiVersion: rollout-group.dev/v1alpha1
      kind: RolloutGroup
      metadata:
        name: ingester
        namespace: mimir
      spec:
        members:
          zones:
            - name: a
              statefulSet: ingester-zone-a
              maxUnavailable: 10%
              paused: true
            - { name: b, statefulSet: ingester-zone-b, follows: a }
        profile: rolloutOperator
        replicas: { leader: true }
        scaling:
          duringRollout: allow
          up: { followersWaitFor: nothing }
        rollout:
          strategy: onDelete
          order: ascending
          rotateBy: delete
          replaceUnready: { when: crashing, after: 0s }
      "
    `);
  });

  it('is the same for a document with its keys in another order', () => {
    const reversed = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(reversed)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .map(([key, member]) => [key, reversed(member)])
                .reverse(),
            )
          : value;
    for (const document of sampleDocuments) {
      expect(writeDocument(reversed(document) as PolicyDocument)).toBe(writeDocument(document));
    }
  });

  it('quotes text that YAML 1.1 reads as another type', () => {
    const document = schemas.RolloutIntent.parse({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutIntent',
      metadata: { name: 'y', labels: { on: 'off', number: '0777', time: '12:30:00' } },
      spec: { group: 'no', action: 'pause', expires: '2026-01-01T00:00:00Z' },
    });
    expect(writeDocument(document)).toMatchInlineSnapshot(`
      "apiVersion: rollout-group.dev/v1alpha1
      kind: RolloutIntent
      metadata:
        name: "y"
        labels: { "on": "off", number: "0777", time: "12:30:00" }
      spec:
        group: "no"
        action: pause
        expires: "2026-01-01T00:00:00Z"
      "
    `);
  });

  it('keeps only short values on one line', () => {
    const zones = (count: number) => Array.from({ length: count }, (_, index) => `zone-number-${index}`);
    const wave = (count: number) => ({ name: 'w', zones: zones(count), percent: 100 });
    const document = schemas.RolloutGroup.parse({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'g' },
      spec: { members: { selector: {} }, rollout: { strategy: 'onDelete', waves: [wave(2), wave(7)] } },
    });
    expect(writeDocument(document)).toMatchInlineSnapshot(`
      "apiVersion: rollout-group.dev/v1alpha1
      kind: RolloutGroup
      metadata:
        name: g
      spec:
        members: { selector: {} }
        rollout:
          strategy: onDelete
          waves:
            - name: w
              zones: [zone-number-0, zone-number-1]
              percent: 100
            - name: w
              zones:
                - zone-number-0
                - zone-number-1
                - zone-number-2
                - zone-number-3
                - zone-number-4
                - zone-number-5
                - zone-number-6
              percent: 100
      "
    `);
  });

  it('starts with its comment', () => {
    const text = sampleDocuments.slice(0, 1).map((one) => writeDocument(one, ['yaml-language-server: $schema=policies.json', 'second']));
    expect(text.join('').split('\n').slice(0, 4)).toEqual([
      '# yaml-language-server: $schema=policies.json',
      '# second',
      '',
      'apiVersion: rollout-group.dev/v1alpha1',
    ]);
  });
});
