import { describe, expect, it } from 'vitest';
import { readReview } from '../../../webhook/review/read-review.ts';
import { type Json, reviewJson, reviewText } from './reviews.ts';

const bounds = { maxDepth: 256, maxValues: 250_000 };

function read(text: string | Buffer) {
  return readReview(typeof text === 'string' ? Buffer.from(text) : text, bounds);
}

function refusal(text: string | Buffer) {
  const result = read(text);
  return 'refused' in result ? `${result.refused.status} ${result.refused.message}` : result.review;
}

function reviewed(request: Json = {}) {
  const result = read(reviewText(request));
  if ('refused' in result) throw new Error(result.refused.message);
  return result.review;
}

describe('a review', () => {
  it('is read into the input of handlers', () => {
    const { request } = reviewJson();
    const { object, oldObject } = request as Json;
    expect(reviewed()).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
      kind: { group: 'apps', version: 'v1', kind: 'StatefulSet' },
      resource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
      subresource: '',
      operation: 'UPDATE',
      namespace: 'mimir',
      name: 'ingester-zone-a',
      user: { name: 'ada', groups: ['system:authenticated', 'on-call'] },
      object,
      oldObject,
      options: { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' },
      dryRun: false,
    });
  });

  it('may be one of v1beta1', () => {
    expect(read(reviewText({}, { apiVersion: 'admission.k8s.io/v1beta1' }))).toMatchObject({
      review: { apiVersion: 'admission.k8s.io/v1beta1' },
    });
  });

  it('has the zero value for missing and null fields', () => {
    const empty = { kind: { group: '', version: '', kind: '' }, resource: { group: '', version: '', resource: '' }, subresource: '' };
    const rest = { uid: '', operation: '', namespace: '', name: '', user: { name: '', groups: [] }, dryRun: false };
    const review = { apiVersion: 'admission.k8s.io/v1', ...empty, ...rest };
    expect(read('{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}')).toEqual({ review });
    const fields = [
      'uid',
      'kind',
      'resource',
      'subResource',
      'operation',
      'namespace',
      'name',
      'userInfo',
      'object',
      'oldObject',
      'options',
      'dryRun',
    ];
    const request = Object.fromEntries(fields.map((field) => [field, null]));
    expect(read(JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request }))).toEqual({ review });
    expect(reviewed({ userInfo: { username: null, groups: null } }).user).toEqual({ name: '', groups: [] });
  });

  it('contains the subresource, and a dry run', () => {
    expect(reviewed({ subResource: 'scale', dryRun: true })).toMatchObject({ subresource: 'scale', dryRun: true });
  });

  it('may have unknown fields, and a repeated field: the last one counts', () => {
    expect(read(reviewText({ novelty: { a: 1 } }))).toHaveProperty('review');
    const twice = reviewText().replace('"name":"ingester-zone-a","namespace"', '"name":"other","name":"ingester-zone-b","namespace"');
    expect(read(twice)).toMatchObject({ review: { name: 'ingester-zone-b' } });
  });

  it('drops entries that would reach a prototype, in any spelling', () => {
    const text = reviewText().replaceAll('"serviceName":"ingester"', '"__proto__":{"polluted":1},"\\u005f_proto__":{"polluted":2}');
    const result = read(text);
    if ('refused' in result) throw new Error(result.refused.message);
    expect(Object.keys(result.review.object?.['spec'] as Json)).not.toContain('__proto__');
    expect(JSON.stringify(result.review)).not.toContain('polluted');
    expect({}).not.toHaveProperty('polluted');
  });

  it('may have the allowed depth', () => {
    // The review itself and its request are two levels.
    const deep = (levels: number) => reviewText().replace('"dryRun":false', `"deep":${'['.repeat(levels)}${']'.repeat(levels)}`);
    expect(read(deep(254))).toHaveProperty('review');
    expect(refusal(deep(255))).toBe('400 the body could not be decoded: it is nested more than 256 levels deep');
  });

  it('ignores brackets and commas within strings', () => {
    expect(reviewed({ name: `${'[{,"\\'.repeat(200)}` }).name).toHaveLength(1000);
    expect(readReview(Buffer.from(reviewText({ note: ','.repeat(300_000) })), bounds)).toHaveProperty('review');
  });
});

describe('invalid reviews', () => {
  it('is rejected with 400 and a sentence', () => {
    const undecodable = '400 the body could not be decoded';
    expect(refusal('')).toBe(`${undecodable}: it is empty`);
    expect(refusal('{')).toBe(`${undecodable}: it is not JSON in UTF-8`);
    expect(refusal('apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n')).toBe(`${undecodable}: it is not JSON in UTF-8`);
    for (const json of ['null', '7', '"AdmissionReview"', '[]', 'true']) expect(refusal(json)).toBe(`${undecodable}: it is not an object`);
    expect(refusal('{}')).toBe(`${undecodable}: it is not an AdmissionReview of admission.k8s.io/v1 or v1beta1`);
  });

  it('is rejected as another kind if Kubernetes knows it', () => {
    const unsupported = '400 unsupported group version kind: an AdmissionReview of admission.k8s.io/v1 or v1beta1 is expected';
    const undecodable = '400 the body could not be decoded: it is not an AdmissionReview of admission.k8s.io/v1 or v1beta1';
    expect(refusal(reviewText({}, { apiVersion: 'apps/v1', kind: 'StatefulSet' }))).toBe(unsupported);
    expect(refusal(reviewText({}, { apiVersion: 'v1', kind: 'Pod' }))).toBe(unsupported);
    expect(refusal(reviewText({}, { apiVersion: 'admission.k8s.io/v2' }))).toBe(undecodable);
    expect(refusal(reviewText({}, { apiVersion: 'example.com/v1', kind: 'Cheese' }))).toBe(undecodable);
    expect(refusal(reviewText({}, { kind: 'AdmissionReviewed' }))).toBe(undecodable);
    expect(refusal(reviewText({}, { apiVersion: 1, kind: ['AdmissionReview'] }))).toBe(undecodable);
  });

  it('is rejected without a request', () => {
    for (const request of [undefined, null]) {
      expect(refusal(reviewText({}, { request }))).toBe('400 the AdmissionReview has no request');
    }
    expect(refusal(reviewText({}, { request: 'DELETE' }))).toBe('400 the body could not be decoded: request is not an object');
  });

  it('is rejected with the name of the field that has another type', () => {
    const wrong: readonly (readonly [Json, string])[] = [
      [{ uid: 7 }, 'request.uid is not a string'],
      [{ kind: 'StatefulSet' }, 'request.kind is not an object'],
      [{ kind: { group: 'apps', version: 1 } }, 'request.kind.version is not a string'],
      [{ resource: [] }, 'request.resource is not an object'],
      [{ resource: { resource: {} } }, 'request.resource.resource is not a string'],
      [{ subResource: false }, 'request.subResource is not a string'],
      [{ operation: ['UPDATE'] }, 'request.operation is not a string'],
      [{ namespace: 0 }, 'request.namespace is not a string'],
      [{ name: {} }, 'request.name is not a string'],
      [{ userInfo: 'ada' }, 'request.userInfo is not an object'],
      [{ userInfo: { username: 1 } }, 'request.userInfo.username is not a string'],
      [{ userInfo: { groups: 'admins' } }, 'request.userInfo.groups is not a list'],
      [{ userInfo: { groups: ['admins', 1] } }, 'request.userInfo.groups[1] is not a string'],
      [{ object: [] }, 'request.object is not an object'],
      [{ oldObject: 'text' }, 'request.oldObject is not an object'],
      [{ options: 1 }, 'request.options is not an object'],
      [{ dryRun: 'true' }, 'request.dryRun is not a boolean'],
    ];
    for (const [request, message] of wrong) expect(refusal(reviewText(request))).toBe(`400 the body could not be decoded: ${message}`);
  });

  it('is rejected if a name is too long', () => {
    expect(reviewed({ uid: 'u'.repeat(1024) }).uid).toHaveLength(1024);
    expect(refusal(reviewText({ uid: 'u'.repeat(1025) }))).toBe(
      '400 the body could not be decoded: request.uid is longer than 1024 characters',
    );
  });

  it('is rejected if it is not UTF-8, or starts with a byte order mark', () => {
    const text = Buffer.from(reviewText());
    const at = text.indexOf('mimir');
    text[at] = 0xff;
    expect(refusal(text)).toBe('400 the body could not be decoded: it is not JSON in UTF-8');
    expect(refusal(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(reviewText())]))).toContain('it is not JSON in UTF-8');
  });

  it('is rejected before parsing if it is too deep or too wide', () => {
    expect(refusal('['.repeat(2_000_000))).toBe('400 the body could not be decoded: it is nested more than 256 levels deep');
    expect(refusal(`[${'{},'.repeat(2_000_000)}{}]`)).toBe('400 the body could not be decoded: it has more than 250000 values');
    expect(refusal(`{${'"a":1,'.repeat(1_000_000)}"b":1}`)).toBe('400 the body could not be decoded: it has more than 250000 values');
  });
});
