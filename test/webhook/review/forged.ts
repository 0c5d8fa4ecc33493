// Bodies that no API server sends, drawn from chance: truncated, retyped, nested, oversized, and such that are almost right.
import type { Random } from '../../kit/random.ts';
import { type Json, reviewJson } from './reviews.ts';

/** One body, and what was done to it. */
export interface Forged {
  readonly how: string;
  readonly bytes: Buffer;
}

/** The next body. Most are a review with a few changes, for what is utter nonsense does not get far. */
export function forge(random: Random): Forged {
  const make = random.pick(makers) ?? retyped;
  return { how: make.name, bytes: make(random) };
}

type Maker = (random: Random) => Buffer;

const words = [
  ...[
    '',
    '0',
    'null',
    '__proto__',
    'constructor',
    'toString',
    'apps',
    'v1',
    'v1beta1',
    'autoscaling',
    'policy',
    'statefulsets',
    'pods',
    'scale',
  ],
  ...[
    'eviction',
    'CREATE',
    'UPDATE',
    'DELETE',
    'CONNECT',
    '*',
    'mimir',
    '../..',
    'a/b',
    '%2e%2e',
    '\u0000',
    '\ud800',
    '😀',
    'ü'.repeat(50),
    ' ',
    '\n',
  ],
  ...[
    'system:node:worker-1',
    'Scale',
    'StatefulSet',
    'Pod',
    'Eviction',
    'ZoneAwarePodDisruptionBudget',
    'grafana.com/no-downscale',
    'true',
  ],
];

const numbers = [0, -0, -1, 1, 3, 2 ** 31, 2 ** 53, -(2 ** 63), 1.5, 1e-320, 1e308];

/** Any JSON, at most `depth` levels of it. */
function anyValue(random: Random, depth = 3): unknown {
  const kind = random.below(depth > 0 ? 8 : 5);
  switch (kind) {
    case 0:
      return null;
    case 1:
      return random.next() < 0.5;
    case 2:
      return random.pick(numbers);
    case 3:
      return random.pick(words);
    case 4:
      return (random.pick(words) ?? 'x').repeat(random.below(100));
    case 5:
      return Array.from({ length: random.below(4) }, () => anyValue(random, depth - 1));
    default:
      return Object.fromEntries(Array.from({ length: random.below(4) }, () => [random.pick(words), anyValue(random, depth - 1)]));
  }
}

/** Every object and array in it, itself included. */
function containers(value: unknown): (Json | unknown[])[] {
  if (typeof value !== 'object' || value === null) return [];
  const children = Array.isArray(value) ? value : Object.values(value as Json);
  return [value as Json | unknown[], ...children.flatMap(containers)];
}

/** A review with the shape of one of several requests. */
function anyReview(random: Random): Json {
  const scale = (replicas: unknown) => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'a', namespace: 'mimir' },
    spec: { replicas },
  });
  const shapes: readonly Json[] = [
    {},
    { subResource: 'scale', kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, object: scale(1), oldObject: scale(3) },
    { subResource: 'scale', object: scale(undefined), oldObject: scale(null) },
    {
      operation: 'DELETE',
      object: null,
      oldObject: { kind: 'Pod', metadata: { name: 'a' } },
      resource: { group: '', version: 'v1', resource: 'pods' },
    },
    { operation: 'CREATE', subResource: 'eviction', oldObject: null, resource: { group: '', version: 'v1', resource: 'pods' } },
    { operation: 'DELETE', name: '', object: null },
    { dryRun: true, userInfo: {} },
  ];
  const apiVersion = random.next() < 0.5 ? 'admission.k8s.io/v1' : 'admission.k8s.io/v1beta1';
  return structuredClone(reviewJson(random.pick(shapes), { apiVersion }));
}

function text(review: unknown): Buffer {
  return Buffer.from(JSON.stringify(review) ?? '');
}

/** A value somewhere in it is another, or is gone. */
export function change(random: Random, review: Json): void {
  const where = random.pick(containers(review)) ?? review;
  const keys = Object.keys(where);
  const key = random.pick(keys) ?? 'x';
  if (random.next() < 0.25) delete (where as Json)[key];
  else (where as Json)[key] = anyValue(random);
}

const whole: Maker = (random) => text(anyReview(random));

const retyped: Maker = (random) => {
  const review = anyReview(random);
  for (let count = 1 + random.below(3); count > 0; count--) change(random, review);
  return text(review);
};

const retypedRequest: Maker = (random) => {
  const review = anyReview(random);
  const request = review['request'] as Json;
  request[random.pick(Object.keys(request)) ?? 'uid'] = anyValue(random);
  return text(review);
};

const anyEnvelope: Maker = (random) =>
  text(
    random.next() < 0.5
      ? anyValue(random, 5)
      : { ...reviewJson(), [random.pick(['kind', 'apiVersion', 'request']) ?? 'kind']: anyValue(random) },
  );

const truncated: Maker = (random) => {
  const bytes = text(anyReview(random));
  return bytes.subarray(0, random.below(bytes.length));
};

const damaged: Maker = (random) => {
  const bytes = text(anyReview(random));
  for (let count = 1 + random.below(4); count > 0; count--) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
};

const spliced: Maker = (random) => {
  const [one, other] = [text(anyReview(random)), text(anyReview(random))];
  return Buffer.concat([one.subarray(0, random.below(one.length)), other.subarray(random.below(other.length))]);
};

const noise: Maker = (random) => Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256)));

const tokens: Maker = (random) => {
  const parts = ['{', '}', '[', ']', ',', ':', '"', '"request"', '"uid":', 'null', '1e999', '-', '\\', '\\u0000', ' ', 'true'];
  return Buffer.from(Array.from({ length: random.below(60) }, () => random.pick(parts)).join(''));
};

/** Objects or arrays within one another, closed or not, around the depth that is allowed. */
const nested: Maker = (random) => {
  const levels = 200 + random.below(120);
  const [opening, closing] = random.next() < 0.5 ? ['[', ']'] : ['{"a":', '}'];
  const inner = opening.repeat(levels) + (opening === '[' ? '' : '1') + (random.next() < 0.8 ? closing.repeat(levels) : '');
  return Buffer.from(JSON.stringify(anyReview(random)).replace('"operation"', `"deep":${inner},"operation"`));
};

/** More values, or longer ones, than anybody needs. */
const oversized: Maker = (random) => {
  const many = 1 << random.below(11);
  const fillers: readonly unknown[] = [
    'x'.repeat(many * 4),
    Array.from({ length: many }, () => 1),
    Object.fromEntries(Array.from({ length: many }, (_, index) => [`k${index}`, {}])),
  ];
  const field = random.pick(['uid', 'name', 'object', 'oldObject', 'userInfo', 'options', 'novelty']) ?? 'uid';
  return text(reviewJson({ [field]: random.pick(fillers) }));
};

/** A field twice, or one that would reach a prototype. */
const doubled: Maker = (random) => {
  const key = random.pick(['uid', 'object', 'replicas', '__proto__', '\\u005f\\u005fproto__', 'constructor', 'toJSON', 'then']) ?? 'uid';
  const field = `"${key}":${JSON.stringify(anyValue(random)) ?? 'null'},`;
  const at = random.pick(['"uid"', '"replicas"', '"name"', '"kind"', '"username"']) ?? '"uid"';
  return Buffer.from(JSON.stringify(anyReview(random)).replace(at, field + at));
};

const makers: readonly Maker[] = [
  ...[whole, retyped, retyped, retyped, retypedRequest, retypedRequest, anyEnvelope, truncated, damaged, damaged],
  ...[spliced, noise, tokens, doubled, nested, oversized],
];
