// What holds the model to the real server works itself: sequences, normalising, comparing, shrinking, and servers that are broken on purpose.
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../simulation/server/request.ts';
import { compare, tell } from './compare.ts';
import { generate } from './generate.ts';
import { Memory } from './memory.ts';
import { modelTarget } from './model-target.ts';
import { normalise } from './normalise.ts';
import type { FilledRequest, Operation, Outcome, Recording, Reply, Sequence, Target } from './operation.ts';
import { play } from './play.ts';
import { lines } from './real-server.ts';
import { shrink } from './shrink.ts';

const collection = '/api/v1/namespaces/<ns>/configmaps';

describe('generate', () => {
  const sequences = Array.from({ length: 2000 }, (_, number) => generate(1, number));

  it('gives the same sequence for the same seed and number, and others for others', () => {
    expect(generate(1, 5)).toEqual(generate(1, 5));
    expect(new Set([...sequences, generate(2, 5)].map((sequence) => JSON.stringify(sequence))).size).toBe(2001);
  });

  it('has few requests in each, apart from its start and its end', () => {
    const counts = sequences.map(({ operations }) => operations.filter(({ isFixed }) => isFixed !== true).length);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(4);
    expect(Math.max(...counts)).toBeLessThanOrEqual(17);
  });

  it('asks for everything that is to be compared', () => {
    const asked = new Set(
      sequences.flatMap(({ operations }) =>
        operations.map(({ method, path, isWatch }) => {
          const [, plural = '', subresource = ''] = /\/namespaces\/<ns>\/([a-z]+)(?:\/[^/?]+\/([a-z]+))?/.exec(path) ?? [];
          return `${isWatch === true ? 'WATCH' : method} ${plural}${subresource === '' ? '' : `/${subresource}`}`;
        }),
      ),
    );
    const kinds = ['pods', 'configmaps', 'leases', 'statefulsets', 'poddisruptionbudgets', 'rolloutgroups', 'replicatemplates'];
    const everywhere = kinds.flatMap((kind) => ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'WATCH'].map((verb) => `${verb} ${kind}`));
    const withStatus = kinds.filter((kind) => kind !== 'configmaps' && kind !== 'leases').map((kind) => `${kind}/status`);
    const withScale = ['statefulsets', 'rolloutgroups', 'replicatemplates'].map((kind) => `${kind}/scale`);
    const subresources = [...withStatus, ...withScale].flatMap((path) => ['GET', 'PUT', 'PATCH'].map((verb) => `${verb} ${path}`));
    expect([...everywhere, ...subresources, 'POST pods/eviction'].filter((one) => !asked.has(one))).toEqual([]);
  });

  it('leaves nothing in angle brackets that is not filled in', () => {
    for (const { operations } of sequences) {
      for (const operation of operations) {
        const { path, body = '' } = new Memory('n').fill(operation);
        expect(`${path} ${body}`).not.toMatch(/[<>]/);
      }
    }
  });
});

describe('Memory', () => {
  it('fills in what was said of an object last, before that and first', () => {
    const memory = new Memory('n1');
    const path = '/api/v1/namespaces/n1/pods/a';
    for (const version of ['5', '7', '7', '9']) memory.hear(path, object('a', 'one', version));
    memory.hear(path, { kind: 'Status', metadata: {}, code: 404 });
    const body = '<uid pods/a> <rv pods/a> <rv pods/a before> <rv pods/a first> <rv pods/b> <ns>';
    expect(memory.fill({ method: 'GET', path: '/', body }).body).toBe('one 9 7 5 5 n1');
  });

  it('keeps the version and the token of the last list', () => {
    const memory = new Memory('n1');
    memory.hear('/api/v1/namespaces/n1/pods?limit=1', {
      metadata: { resourceVersion: '12', continue: 'abc' },
      items: [object('a', 'one', '3')],
    });
    expect(memory.fill({ method: 'GET', path: '/<rv list>/<continue>/<rv pods/a>' }).path).toBe('/12/abc/3');
  });
});

describe('normalise', () => {
  it('sees no difference in UIDs, times, and versions that lie further apart', () => {
    const one = recorded([object('a', 'x', '5'), object('b', 'y', '6'), list('6')], 'n1');
    const other = recorded([object('a', 'u', '100'), object('b', 'v', '250'), list('300')], 'n2');
    expect(normalise(one)).toEqual(normalise(other));
  });

  it('sees versions in another order, another object under a name, and a list of the past', () => {
    const whole = recorded([object('a', 'x', '5'), object('b', 'y', '6'), list('6')], 'n');
    const others = [
      [object('a', 'x', '6'), object('b', 'y', '5'), list('6')],
      [object('a', 'x', '5'), object('b', 'x', '6'), list('6')],
      [object('a', 'x', '5'), object('b', 'y', '6'), list('5')],
    ];
    expect(others.map((bodies) => compare(whole, recorded(bodies, 'n'))?.lines)).toEqual([
      ['.body.metadata.resourceVersion: "version 1" | "version 2"'],
      ['.body.metadata.uid: "uid 2" | "uid 1"'],
      ['.body.metadata.resourceVersion: "version 2" | "version 1"'],
    ]);
  });

  it('keeps of a refusal what a program reads', () => {
    const causes = [
      { reason: 'FieldValueInvalid', message: 'one text', field: 'metadata.uid' },
      { reason: 'FieldValueInvalid', message: 'another', field: 'metadata.uid' },
    ];
    const body = {
      kind: 'Status',
      status: 'Failure',
      code: 422,
      reason: 'Invalid',
      message: 'text',
      details: { name: 'a', kind: 'Pod', causes },
    };
    expect(normalise(recorded([body], 'n'))).toEqual([
      {
        status: 200,
        body: { status: 'Failure', code: 422, reason: 'Invalid', name: 'a', kind: 'Pod', causes: ['FieldValueInvalid metadata.uid'] },
      },
    ]);
  });
});

describe('compare', () => {
  it('tells the first operation that differs, and where', () => {
    const sequence: Sequence = {
      theme: 'configmaps',
      operations: [
        { method: 'GET', path: collection },
        { method: 'GET', path: '/other' },
      ],
    };
    const one: Recording = { namespace: 'n', outcomes: [answer(200, {}), answer(404, {})] };
    const other: Recording = { namespace: 'n', outcomes: [answer(200, {}), answer(409, {})] };
    const difference = compare(one, other);
    expect(difference).toMatchObject({ index: 1, lines: ['.status: 404 | 409'] });
    expect(difference && tell(sequence, difference, ['model', 'real'])).toMatchInlineSnapshot(`
      "theme configmaps:
        0 GET /api/v1/namespaces/<ns>/configmaps
      > 1 GET /other
      they differ in (model | real):
        .status: 404 | 409
      model: {"status":404,"body":{}}
      real: {"status":409,"body":{}}"
    `);
  });
});

describe('shrink', () => {
  it('leaves what is needed, and what is part of every sequence', async () => {
    const operations = Array.from({ length: 12 }, (_, index): Operation => ({ method: 'GET', path: `/${index}`, isFixed: index === 0 }));
    const shows = async ({ operations: left }: Sequence): Promise<string | undefined> => {
      const paths = left.map(({ path }) => path);
      return paths.includes('/3') && paths.includes('/8') ? paths.join() : undefined;
    };
    const { sequence, shown } = await shrink({ theme: 'any', operations }, 'at first', shows);
    expect(sequence.operations.map(({ path }) => path)).toEqual(['/0', '/3', '/8']);
    expect(shown).toBe('/0,/3,/8');
  });
});

describe('lines', () => {
  it('puts lines together that come in parts', () => {
    const read: string[] = [];
    const take = lines((line) => read.push(line));
    for (const part of ['{"a"', ':1}\n{"b":2}\n', '{', '}\n{"cut']) take(part);
    expect(read).toEqual(['{"a":1}', '{"b":2}', '{}']);
  });
});

describe('a server that is broken', () => {
  const differs = async (sequence: Sequence, breaking: (target: Target) => Target) =>
    compare(await play(sequence, modelTarget(1), 'n'), await play(sequence, breaking(modelTarget(1)), 'n'));

  it('is not one that is whole', async () => {
    for (let number = 0; number < 60; number += 1) expect(await differs(generate(7, number), (target) => target)).toBeUndefined();
  });

  it.each(Object.entries(defects))('is found, and shown by few requests, when it %s', async (_, breaking) => {
    for (let number = 0; number < 400; number += 1) {
      const sequence = generate(7, number);
      const difference = await differs(sequence, breaking);
      if (difference === undefined) continue;
      const small = await shrink(sequence, difference, (shorter) => differs(shorter, breaking));
      expect(small.sequence.operations.filter(({ isFixed }) => isFixed !== true).length).toBeLessThanOrEqual(5);
      return;
    }
    expect.fail('400 sequences did not show it');
  });
});

const asking =
  (change: (request: FilledRequest) => FilledRequest) =>
  (target: Target): Target => ({
    ...target,
    ask: (request) => target.ask(change(request)),
  });
const answering =
  (change: (reply: Reply, request: FilledRequest) => Reply) =>
  (target: Target): Target => ({
    ...target,
    ask: async (request) => change(await target.ask(request), request),
  });
const telling =
  (change: (line: string) => string | undefined) =>
  (target: Target): Target => ({
    ...target,
    open: (request, onLine, onEnd) => {
      const take = (line: string): void => {
        const changed = change(line);
        if (changed !== undefined) onLine(changed);
      };
      return target.open(request, take, onEnd);
    },
  });

/** What a model may do wrong that would make a simulation worthless. */
const defects: Readonly<Record<string, (target: Target) => Target>> = {
  'ignores preconditions of deletes': asking((request) => (request.method === 'DELETE' ? without(request, ['preconditions']) : request)),
  'ignores the resourceVersion of writes': asking((request) => withoutMetadata(request, ['PUT', 'PATCH'], 'resourceVersion')),
  'ignores the uid of writes': asking((request) => withoutMetadata(request, ['PUT', 'PATCH'], 'uid')),
  'does not know dry runs': asking((request) => ({ ...request, path: request.path.replace('dryRun=All', '') })),
  'deletes without grace': asking((request) => (request.method === 'DELETE' ? graceless(request) : request)),
  'takes every list for a whole one': asking((request) => ({ ...request, path: request.path.replace(/limit=\d+/, '') })),
  'ignores selectors': asking((request) => ({ ...request, path: request.path.replace(/(?:label|field)Selector=[^&]*/, '') })),
  'evicts past budgets': answering((reply, { path }) =>
    path.includes('/eviction') && reply.status === 429 ? { ...reply, status: 201 } : reply,
  ),
  'does not say when to come back': answering((reply) => ({ ...reply, headers: {} })),
  'counts every write as a new generation': answering((reply, { method }) =>
    method === 'PATCH' ? { ...reply, body: reply.body.replace(/"generation":1\b/, '"generation":2') } : reply,
  ),
  'does not tell of deletions': telling((line) => (line.includes('"type":"DELETED"') ? undefined : line)),
  'tells every change as an addition': telling((line) => line.replace('"type":"MODIFIED"', '"type":"ADDED"')),
};

function without(request: FilledRequest, keys: readonly string[]): FilledRequest {
  const body = parsed(request.body);
  if (body === undefined) return request;
  return { ...request, body: JSON.stringify(Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)))) };
}

function withoutMetadata(request: FilledRequest, methods: readonly string[], key: string): FilledRequest {
  const body = parsed(request.body);
  if (body === undefined || !methods.includes(request.method)) return request;
  const metadata = Object.entries((body['metadata'] ?? {}) as Json).filter(([name]) => name !== key);
  return { ...request, body: JSON.stringify({ ...body, metadata: Object.fromEntries(metadata) }) };
}

function graceless(request: FilledRequest): FilledRequest {
  return { ...request, body: JSON.stringify({ kind: 'DeleteOptions', apiVersion: 'v1', ...parsed(request.body), gracePeriodSeconds: 0 }) };
}

function parsed(text = ''): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

function object(name: string, uid: string, resourceVersion: string): Json {
  return { kind: 'ConfigMap', metadata: { name, uid, resourceVersion, creationTimestamp: `2026-01-15T12:00:0${name.length}Z` } };
}

function list(resourceVersion: string): Json {
  return { kind: 'ConfigMapList', metadata: { resourceVersion }, items: [] };
}

function answer(status: number, body: unknown): Outcome {
  return { kind: 'answer', status, body };
}

function recorded(bodies: readonly unknown[], namespace: string): Recording {
  return { namespace, outcomes: bodies.map((body) => answer(200, body)) };
}
