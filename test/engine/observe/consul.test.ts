import { describe, expect, it } from 'vitest';
import { type ConsulAnswer, readConsul } from '../../../engine/observe/readings.ts';

const atMs = Date.parse('2026-03-02T12:00:00Z');

/** An instance as https://developer.hashicorp.com/consul/api-docs/health#list-service-instances-for-service describes it. */
function instance(...statuses: readonly string[]) {
  return {
    Node: { ID: '40e4a748-2192-161a-0510-9bf59fe950b5', Node: 'foobar', Address: '10.1.10.12', Datacenter: 'dc1' },
    Service: { ID: 'redis', Service: 'redis', Tags: ['primary'], Address: '10.1.10.12', Port: 8000 },
    Checks: statuses.map((Status, index) => ({ Node: 'foobar', CheckID: index === 0 ? 'serfHealth' : `service:${index}`, Status })),
  };
}

function read(answer: Partial<ConsulAnswer> & { readonly list?: unknown }, counts: 'passing' | 'notPassing' = 'notPassing') {
  const { list = [], ...rest } = answer;
  const reading = readConsul({ status: 200, body: JSON.stringify(list), ...rest }, { atMs, counts, toleranceMs: 30_000 });
  const { atMs: at, ...result } = reading;
  expect(at).toBe(atMs);
  return result;
}

const value = (number: number) => ({ result: 'value', value: number });
const error = (message: string) => ({ result: 'error', message });

describe('an answer of Consul', () => {
  const list = [
    instance('passing', 'passing'),
    instance('passing', 'warning'),
    instance('critical', 'passing'),
    instance('maintenance'),
    instance(),
  ];

  it('counts the instances with a failing check, or the passing instances', () => {
    expect(read({ list })).toEqual(value(3));
    expect(read({ list }, 'passing')).toEqual(value(2));
  });

  it('is no data for a service without instances, because its name may be wrong', () => {
    expect(read({ list: [] })).toEqual({ result: 'noData' });
    expect(read({ list: [] }, 'passing')).toEqual({ result: 'noData' });
  });

  it.each<[string, Partial<ConsulAnswer> & { readonly list?: unknown }, string]>([
    ['a refusal', { status: 403, body: 'Permission denied' }, 'the provider does not accept the credentials (HTTP 403)'],
    ['a failure', { status: 500, body: 'No cluster leader' }, 'the provider answered HTTP 500'],
    ['another success', { status: 204, body: '' }, 'the provider answered HTTP 204'],
    ['a page', { body: '<html>' }, 'the answer is not JSON'],
    ['an object', { list: { Checks: [] } }, 'the answer is not a list of instances'],
    ['null', { body: 'null' }, 'the answer is not a list of instances'],
    ['instances without checks', { list: [{ Node: {} }] }, 'an instance has no checks'],
    ['checks without status', { list: [{ Checks: [{ CheckID: 'x' }] }] }, 'a check has no status'],
    [
      'of a datacenter without leader',
      { list, headers: { 'x-consul-knownleader': 'false' } },
      'the datacenter has no leader, so the answer may be old',
    ],
    ['of a follower that is behind', { list, headers: { 'x-consul-lastcontact': '45000' } }, 'the answer is 45s old'],
    ['of an age that is no number', { list, headers: { 'x-consul-lastcontact': 'x' } }, 'the answer does not say how old it is'],
    [
      'a part of the instances',
      { list: [instance('passing')], headers: { 'x-consul-results-filtered-by-acls': 'true' } },
      'the ACLs hide some instances from the token',
    ],
  ])('is an error when it is %s', (_what, answer, message) => {
    expect(read(answer)).toEqual(error(message));
    expect(read(answer, 'passing')).toEqual(error(message));
  });

  it('is valid with the headers that a healthy agent sends', () => {
    const headers = {
      'x-consul-knownleader': 'true',
      'x-consul-lastcontact': '0',
      'x-consul-index': '12',
      'x-consul-effective-consistency': 'leader',
    };
    expect(read({ list: [instance('passing')], headers })).toEqual(value(0));
    expect(read({ list: [instance('passing')], headers: { ...headers, 'x-consul-lastcontact': '30000' } })).toEqual(value(0));
  });
});
