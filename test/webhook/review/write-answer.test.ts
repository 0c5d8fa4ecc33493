import { describe, expect, it } from 'vitest';
import { writeAnswer } from '../../../webhook/review/decide.ts';
import { type Answer, boundedText } from '../../../webhook/review/review.ts';

const review = { apiVersion: 'admission.k8s.io/v1', uid: 'abc' } as const;

function written(answer: Answer): unknown {
  return JSON.parse(writeAnswer(review, answer));
}

function response(answer: Answer): Record<string, unknown> {
  return (written(answer) as { response: Record<string, unknown> }).response;
}

describe('an answer', () => {
  it('has the apiVersion and the uid of its review', () => {
    expect(written({ allowed: true })).toEqual({
      kind: 'AdmissionReview',
      apiVersion: 'admission.k8s.io/v1',
      response: { uid: 'abc', allowed: true },
    });
    expect(JSON.parse(writeAnswer({ apiVersion: 'admission.k8s.io/v1beta1', uid: 'ü"\n' }, { allowed: false }))).toEqual({
      kind: 'AdmissionReview',
      apiVersion: 'admission.k8s.io/v1beta1',
      response: { uid: 'ü"\n', allowed: false },
    });
  });

  it('has the reason in a status, and a code only if it has one', () => {
    expect(response({ allowed: false, message: 'no' })).toEqual({ uid: 'abc', allowed: false, status: { metadata: {}, message: 'no' } });
    expect(response({ allowed: false, code: 429, reason: 'TooManyRequests', message: 'later', retryAfterSeconds: 5 })).toMatchObject({
      status: { metadata: {}, message: 'later', reason: 'TooManyRequests', details: { retryAfterSeconds: 5 }, code: 429 },
    });
  });

  it('has a patch as base64, and no empty patch', () => {
    const patch = [
      { op: 'test', path: '/metadata/uid', value: '1f' },
      { op: 'remove', path: '/metadata/labels/ä' },
    ] as const;
    const { patch: text, patchType } = response({ allowed: true, patch });
    expect(patchType).toBe('JSONPatch');
    expect(JSON.parse(Buffer.from(String(text), 'base64').toString())).toEqual(patch);
    expect(response({ allowed: true, patch: [] })).toEqual({ uid: 'abc', allowed: true });
  });

  it('is not written with a patch of more than ten operations, or of invalid JSON', () => {
    const operation = { op: 'add', path: '/a', value: 1 } as const;
    expect(response({ allowed: true, patch: Array.from({ length: 10 }, () => operation) })).toHaveProperty('patch');
    expect(() => writeAnswer(review, { allowed: true, patch: Array.from({ length: 11 }, () => operation) })).toThrow(RangeError);
    expect(() => writeAnswer(review, { allowed: true, patch: [{ op: 'add', path: '/a', value: 1n }] })).toThrow(TypeError);
  });

  it('has a message of at most 1 KiB', () => {
    const { status } = response({ allowed: false, message: 'é'.repeat(5000) }) as { status: { message: string } };
    expect(Buffer.byteLength(status.message)).toBeLessThanOrEqual(1024);
    expect(status.message).toMatch(/^é{510}…$/);
  });

  it('has at most 16 warnings and audit annotations, each bounded', () => {
    const warnings = Array.from({ length: 50 }, () => 'w'.repeat(2000));
    const auditAnnotations = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, 'v'.repeat(2000)]));
    const given = response({ allowed: true, warnings, auditAnnotations }) as {
      warnings: string[];
      auditAnnotations: Record<string, string>;
    };
    expect(given.warnings).toHaveLength(16);
    expect(given.warnings.every((warning) => Buffer.byteLength(warning) === 1024)).toBe(true);
    expect(Object.keys(given.auditAnnotations)).toHaveLength(16);
    expect(Object.values(given.auditAnnotations).every((value) => Buffer.byteLength(value) === 1024)).toBe(true);
  });

  it('omits audit annotations with a key that an API server rejects', () => {
    const auditAnnotations = { 'a.b-c_d': '1', '': '2', 'has/prefix': '3', 'has space': '4', [`x${'y'.repeat(63)}`]: '5', '-a': '6' };
    expect(response({ allowed: true, auditAnnotations })).toMatchObject({ auditAnnotations: { 'a.b-c_d': '1' } });
    expect(response({ allowed: true, auditAnnotations: { 'has space': '4' } })).not.toHaveProperty('auditAnnotations');
  });
});

describe('bounded text', () => {
  it('is unchanged if it fits', () => {
    expect(boundedText('', 3)).toBe('');
    expect(boundedText('abc', 3)).toBe('abc');
    expect(boundedText('ääää', 8)).toBe('ääää');
  });

  it('splits no character', () => {
    expect(boundedText('abcd', 3)).toBe('…');
    expect(boundedText('äääää', 8)).toBe('ää…');
    expect(boundedText('😀😀😀', 10)).toBe('😀…');
    for (let bytes = 3; bytes < 40; bytes++) {
      const cut = boundedText('a😀é✓'.repeat(9), bytes);
      expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(bytes);
      expect(cut).not.toContain('\ufffd');
    }
  });

  it('has no half of a surrogate pair', () => {
    expect(boundedText('\ud83d', 9)).toBe('\ufffd');
  });
});
