import { describe, expect, it } from 'vitest';
import { parseDocuments } from '../../policies/yaml/document.ts';

/** The same text, which the YAML parser reads because of the comment. */
const asYaml = (text: string) => parseDocuments('x.json', `${text}\n# read as YAML`).documents[0];
const asJson = (text: string) => parseDocuments('x.json', text).documents[0];

const manifest = JSON.stringify(
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'a', annotations: { note: 'quoted \\"key\\": {[,]} é 😀', empty: '' } },
    spec: { replicas: 3, ratio: 1.5e3, big: 1e21, list: [null, true, [], {}] },
  },
  null,
  2,
);

describe('manifests in JSON', () => {
  it('have the values that the YAML parser reads', () => {
    expect(asJson(manifest)?.value).toEqual(asYaml(manifest)?.value);
  });

  it('have the same places', () => {
    const paths = [[], ['spec', 'replicas'], ['spec', 'list', 1], ['spec', 'list', 3], ['metadata', 'annotations', 'note'], ['spec']];
    for (const text of [manifest, JSON.stringify(JSON.parse(manifest)), `  ${manifest}\n\n`]) {
      for (const part of ['value', 'key'] as const) {
        for (const path of paths) expect(asJson(text)?.find(path, part)).toEqual(asYaml(text)?.find(path, part));
      }
    }
    for (const path of paths) {
      expect(asJson(manifest)?.place([...path, 'absent'])).toEqual(asYaml(manifest)?.place([...path, 'absent']));
    }
    expect(asJson(manifest)?.find(['spec', 'absent'])).toBeUndefined();
  });

  it.each([
    ['a key that is written twice', '{"kind":"StatefulSet","spec":{"replicas":1,"replicas":2}}'],
    ['text behind the object', '{"kind":"StatefulSet"} x'],
    ['more nesting than is allowed', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`],
    [
      'a document of ours',
      '{"apiVersion":"rollout-group.dev/v1alpha1","kind":"RolloutGroup","metadata":{"name":"a"},"spec":{"x":1,"x":2}}',
    ],
  ])('with %s are rejected as in YAML', (_, text) => {
    const codes = (given: string) => {
      const { documents, findings } = parseDocuments('x.json', given);
      return [...findings, ...documents.flatMap(({ errors }) => errors)].map(({ code }) => code);
    };
    expect(codes(text)).not.toEqual([]);
    expect(codes(text)).toEqual(codes(` ${text}\n# read as YAML`));
  });

  it('may be larger than policies, because reading them is fast', () => {
    const items = Array.from({ length: 4000 }, (_, index) => ({ kind: 'ConfigMap', data: { text: 'x'.repeat(400), index } }));
    const document = asJson(JSON.stringify({ kind: 'List', items }));
    expect(document?.errors).toEqual([]);
    expect(document?.place(['items', 7])).toMatchObject({ line: 1, column: 1 });
  });
});
