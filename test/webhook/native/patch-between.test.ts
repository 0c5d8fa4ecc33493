import fc from 'fast-check';
import { expect, it } from 'vitest';
import { patchBetween } from '../../../webhook/native/pin-endpoint.ts';
import { applyPatch, type Json } from './json-patch.ts';

const pod: Json = {
  metadata: { labels: { a: '1', 'x/y~z': '1' }, annotations: { gone: 'yes' } },
  spec: {
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'b', image: 'b:1' },
    ],
    priority: 0,
  },
};

it('names single values, escapes keys, and replaces lists whose length changes', () => {
  const after = {
    metadata: { labels: { a: '1', 'x/y~z': '2' } },
    spec: {
      containers: [
        { name: 'a', image: 'a:2' },
        { name: 'b', image: 'b:1' },
      ],
      tolerations: [],
    },
  };
  expect(patchBetween(pod, after, 9)).toEqual([
    { op: 'replace', path: '/metadata/labels/x~1y~0z', value: '2' },
    { op: 'remove', path: '/metadata/annotations' },
    { op: 'replace', path: '/spec/containers/0/image', value: 'a:2' },
    { op: 'remove', path: '/spec/priority' },
    { op: 'add', path: '/spec/tolerations', value: [] },
  ]);
  expect(patchBetween(pod, { ...pod, spec: { containers: [] } }, 9)).toEqual([
    { op: 'replace', path: '/spec/containers', value: [] },
    { op: 'remove', path: '/spec/priority' },
  ]);
  expect(patchBetween(pod, structuredClone(pod), 9)).toEqual([]);
});

it('is coarser where single values would be too many', () => {
  const many = (version: number): Json => ({
    metadata: { labels: { version: String(version) } },
    spec: { ...Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`field${index}`, version])) },
  });
  expect(patchBetween(many(1), many(2), 9).map(({ path }) => path)).toEqual(['/metadata', '/spec']);
});

it('makes one object of any other', () => {
  const object = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
  fc.assert(
    fc.property(object, object, fc.integer({ min: 8, max: 12 }), (before, after, most) => {
      const patch = patchBetween(before as Json, after as Json, most);
      expect(patch.length).toBeLessThanOrEqual(most);
      expect(applyPatch(before as Json, patch)).toEqual(after);
    }),
    { numRuns: 500 },
  );
});
