// What holds the models of the controllers to the real ones works itself: sequences, comparing, shrinking, and sides that are wrong on purpose.
import { describe, expect, it } from 'vitest';
import { generateSteps } from './controllers/generate-steps.ts';
import { createModelSide, type ModelSide } from './controllers/model-side.ts';
import { differAt, partsOf, tellSteps } from './controllers/play-steps.ts';
import type { Step, StepSequence } from './controllers/step.ts';
import { type Side, Workload } from './controllers/workload.ts';
import type { FilledRequest } from './operation.ts';
import { shrink } from './shrink.ts';

describe('generateSteps', () => {
  const sequences = Array.from({ length: 500 }, (_, number) => generateSteps(1, number));

  it('gives the same sequence for the same seed and number, and others for others', () => {
    expect(generateSteps(1, 5)).toEqual(generateSteps(1, 5));
    expect(new Set([...sequences, generateSteps(2, 5)].map((sequence) => JSON.stringify(sequence))).size).toBe(501);
  });

  it('plays everything that is to be compared', () => {
    const played = new Set(
      sequences.flatMap(({ operations }) =>
        operations.flatMap((step) => [
          step.kind,
          ...(step.kind === 'pod' ? [step.state] : step.kind === 'create' ? [step.podManagementPolicy] : []),
        ]),
      ),
    );
    const kinds = [
      'create',
      'replicas',
      'template',
      'strategy',
      'minReady',
      'start',
      'orphan',
      'delete',
      'evict',
      'finalizer',
      'gone',
      'node',
      'pod',
      'kubelets',
    ];
    const states = ['ready', 'young', 'unready', 'failed', 'succeeded', 'OrderedReady', 'Parallel'];
    expect([...played].sort()).toEqual([...kinds, 'budget', ...states].sort());
  });
});

/** Compares the model with another instance of it, which `breaking` may change. */
async function differs(sequence: StepSequence, breaking: (side: ModelSide) => Side, hasMaxUnavailable = false) {
  const [model, other] = [createModelSide(1), createModelSide(2, { hasMaxUnavailable })];
  for (const side of [model, other])
    await side.ask({ method: 'POST', path: '/api/v1/namespaces', body: JSON.stringify({ metadata: { name: 'n' } }) });
  const wait = async (attempt: number): Promise<boolean> => {
    await other.settle();
    return attempt < 2;
  };
  return await differAt(sequence, { model, real: breaking(other), wait }, 'n');
}

const asking =
  (change: (request: FilledRequest) => FilledRequest) =>
  (side: ModelSide): Side => ({ ...side, ask: (request) => side.ask(change(request)) });

function replaced(request: FilledRequest, from: string, to: string): FilledRequest {
  return request.body === undefined ? request : { ...request, body: request.body.replace(from, to) };
}

/** What a model of the controllers may do wrong that would make plans and simulations wrong. */
const defects: Readonly<Record<string, (side: ModelSide) => Side>> = {
  'creates pods in no order': asking((request) => replaced(request, '"OrderedReady"', '"Parallel"')),
  'ignores the partition': asking((request) => replaced(request, /"partition":\d+/.exec(request.body ?? '')?.[0] ?? ' ', '"partition":0')),
  'updates pods with OnDelete': asking((request) => replaced(request, '"OnDelete"', '"RollingUpdate"')),
  'takes every ready pod for available': asking((request) => replaced(request, '"minReadySeconds":86400', '"minReadySeconds":0')),
  'keeps pods that have ended': asking((request) => replaced(request, '"Failed"', '"Running"')),
  'removes terminating pods': asking((request) =>
    request.method === 'DELETE' && request.path.includes('/pods/') ? { ...request, body: '{"gracePeriodSeconds":0}' } : request,
  ),
};

const parallel = { podManagementPolicy: 'Parallel', partition: 0, start: 0, minReadySeconds: 0, version: 1 } as const;

/** Afterwards pod 1 terminates, and pod 3 would let the update delete pod 2, which decides the revision of the next pod 1. */
const unclearRevision: readonly Step[] = [
  { kind: 'create', ...parallel, strategy: 'OnDelete', replicas: 4 },
  { kind: 'kubelets' },
  { kind: 'template', version: 3 },
  { kind: 'strategy', strategy: 'withoutBlock', partition: 0 },
  { kind: 'gone', ordinal: 3 },
  { kind: 'delete', ordinal: 1 },
];

describe('a model of the controllers', () => {
  it('does not differ from itself', async () => {
    for (let number = 0; number < 15; number += 1) expect(await differs(generateSteps(7, number), (side) => side)).toBeUndefined();
  });

  it('differs with another feature gate', async () => {
    const sequences = Array.from({ length: 20 }, (_, number) => generateSteps(7, number, { hasMaxUnavailable: true }));
    const found = await Promise.all(sequences.map((sequence) => differs(sequence, (side) => side, true)));
    expect(found.filter((one) => one !== undefined).length).toBeGreaterThan(0);
  });

  it('turns again after it deleted a pod, and deletes further unavailable pods with MaxUnavailableStatefulSet', async () => {
    const model = createModelSide(1, { hasMaxUnavailable: true });
    const workload = new Workload(model, 'n');
    await model.ask({ method: 'POST', path: '/api/v1/namespaces', body: JSON.stringify({ metadata: { name: 'n' } }) });
    await workload.play({ kind: 'create', ...parallel, strategy: 'RollingUpdate', maxUnavailable: 3, replicas: 2 });
    await model.settle();
    await workload.play({ kind: 'template', version: 2 });
    await model.settle();
    const { set, pods } = await workload.read(true);
    expect([set?.['currentReplicas'], ...pods.map(({ isTerminating }) => isTerminating)]).toEqual([0, true, true]);
  });

  it('depends on the order in which kubelets write, so a step fixes the order', async () => {
    const versions = async (kubelets: Step): Promise<readonly unknown[]> => {
      const model = createModelSide(1);
      const workload = new Workload(model, 'n');
      await model.ask({ method: 'POST', path: '/api/v1/namespaces', body: JSON.stringify({ metadata: { name: 'n' } }) });
      let state = await workload.read(true);
      for (const step of [...unclearRevision, kubelets])
        for (const part of partsOf(step, state)) {
          await workload.play(part);
          await model.settle();
          state = await workload.read(true);
        }
      return state.pods.map(({ version }) => version);
    };
    expect(await versions({ kind: 'kubelets' })).toEqual(['1', '1', '1', '3']);
    expect(await versions({ kind: 'kubelets', isDescending: true })).toEqual(['1', '3', '1', '3']);
  });

  it.each(Object.entries(defects))('is found, and shown by few steps, when it %s', async (_, breaking) => {
    for (let number = 0; number < 200; number += 1) {
      const sequence = generateSteps(7, number);
      const difference = await differs(sequence, breaking);
      if (difference === undefined) continue;
      const small = await shrink(sequence, difference, (shorter) => differs(shorter, breaking));
      expect(small.sequence.operations.length).toBeLessThanOrEqual(6);
      return;
    }
    expect.fail('200 sequences did not show it');
  });

  it('tells the steps up to a difference, and the values that differ', async () => {
    const operations: StepSequence['operations'] = [
      { kind: 'create', ...parallel, strategy: 'OnDelete', replicas: 1 },
      { kind: 'pod', ordinal: 0, state: 'failed' },
      { kind: 'kubelets' },
    ];
    const difference = await differs({ operations }, defects['keeps pods that have ended'] ?? ((side) => side));
    if (difference === undefined) throw new Error('the test expected a difference');
    expect(tellSteps({ operations }, difference)).toMatchInlineSnapshot(`
      "  0 {"kind":"create","podManagementPolicy":"Parallel","partition":0,"start":0,"minReadySeconds":0,"version":1,"strategy":"OnDelete","replicas":1}
      > 1 {"kind":"pod","ordinal":0,"state":"failed"}
        they differ in (model | real):
          .pods.0.conditions.0: undefined | "Ready=False "
          .pods.0.number: 2 | 1
          .pods.0.phase: "Pending" | "Running""
    `);
  });
});
