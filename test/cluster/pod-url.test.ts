import { describe, expect, it } from 'vitest';
import { podUrl } from '../../cluster/pods.ts';

const address = { namespace: 'mimir', pod: 'ingester-zone-a-0', serviceName: 'ingester', clusterDomain: 'cluster.local.' };
const endpoint = { scheme: 'http' as const, port: 8080, path: '/ingester/prepare?wait=1' };

describe('the address of a pod', () => {
  it('is its name in its Service', () => {
    expect(podUrl(address, endpoint)).toBe('http://ingester-zone-a-0.ingester.mimir.svc.cluster.local.:8080/ingester/prepare?wait=1');
  });

  it.each([
    ['prepare', '/prepare'],
    ['/a b', undefined],
    ['/ä', '/%C3%A4'],
    ['//other.host/x', '//other.host/x'],
    ['/[x]', '/%5Bx%5D'],
    ['/a%2Fb', '/a%2Fb'],
    ['/a%zz', undefined],
    ['/a#b', undefined],
    ['/a@b', undefined],
    ['/a\\b', undefined],
    [`/${'a'.repeat(1024)}`, undefined],
  ])('keeps its host with any path: %s', (path, expected) => {
    const make = () => podUrl(address, { ...endpoint, path });
    if (expected === undefined) expect(make).toThrow(RangeError);
    else {
      expect(make()).toBe(`http://ingester-zone-a-0.ingester.mimir.svc.cluster.local.:8080${expected}`);
      expect(new URL(make()).hostname).toBe('ingester-zone-a-0.ingester.mimir.svc.cluster.local.');
    }
  });

  it.each([
    { ...address, serviceName: 'a@b' },
    { ...address, serviceName: '' },
    { ...address, pod: 'a/b' },
    { ...address, pod: 'a:80' },
    { ...address, namespace: 'x.y' },
    { ...address, clusterDomain: 'a@evil' },
    { ...address, clusterDomain: '' },
  ])('rejects parts that are not names: %o', (wrong) => {
    expect(() => podUrl(wrong, endpoint)).toThrow(RangeError);
  });

  it.each([0, 65_536, 80.5, Number.NaN])('rejects port %d', (port) => {
    expect(() => podUrl(address, { ...endpoint, port })).toThrow(RangeError);
  });
});
