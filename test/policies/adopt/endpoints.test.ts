import { describe, expect, it } from 'vitest';
import { annotationKeys, labelKeys } from '../../../policies/adopt/keys.ts';
import { adoptZone } from './kit.ts';

const { preparePort, preparePath, delay, delayedUrl } = annotationKeys;

describe('grafana.com/prepare-downscale', () => {
  const prepare = (port: string | undefined, path: string | undefined, serviceName = 'ingester') => {
    const annotations = { ...(port !== undefined && { [preparePort]: port }), ...(path !== undefined && { [preparePath]: path }) };
    const { zone, findings } = adoptZone({ labels: { [labelKeys.prepareDownscale]: 'true' }, annotations, serviceName });
    return { down: zone?.scaling?.down, findings };
  };
  const prepared = (port: number, path: string) => ({
    down: { prepare: { endpoint: { scheme: 'http', port, path, timeout: '5s' }, onFailure: 'deny' } },
    findings: [],
  });

  it.each([
    ['80', 'ingester/prepare-shutdown', 80, '/ingester/prepare-shutdown'],
    ['080', '/ingester/prepare-shutdown', 80, '/ingester/prepare-shutdown'],
    ['65535', '/', 65_535, '/'],
    ['8080', 'p?force=true#fragment', 8080, '/p?force=true'],
    ['8080', 'a b@c\\d', 8080, '/a%20b%40c%5Cd'],
  ])('calls port %j at path %j', (port, path, expectedPort, expectedPath) => {
    expect(prepare(port, path)).toEqual(prepared(expectedPort, expectedPath));
  });

  it.each([
    ['no port', undefined, 'p', 'ingester', preparePort, `${preparePort} is missing, so no pod can be prepared`],
    ['an empty port', '', 'p', 'ingester', preparePort, `${preparePort} is missing, so no pod can be prepared`],
    ['a port by name', 'http', 'p', 'ingester', preparePort, `${preparePort} is "http", which is not a port`],
    ['port 0', '0', 'p', 'ingester', preparePort, `${preparePort} is "0", which is not a port`],
    ['a port out of range', '65536', 'p', 'ingester', preparePort, `${preparePort} is "65536", which is not a port`],
    ['no path', '80', undefined, 'ingester', preparePath, `${preparePath} is missing, so no pod can be prepared`],
    ['a broken escape', '80', 'p%zz', 'ingester', preparePath, `${preparePath} is "p%zz", which is not a URL path`],
    ['no service', '80', 'p', '', 'spec.serviceName', 'spec.serviceName is missing, so the pods have no DNS name'],
  ])('with %s blocks a downscale', (_, port, path, serviceName, field, hold) => {
    expect(prepare(port, path, serviceName)).toEqual({ down: { hold }, findings: [`RG4007 ${field}`] });
  });

  it.each(['True', '1'])('is off for %j', (text) => {
    expect(adoptZone({ labels: { [labelKeys.prepareDownscale]: text } })).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a' },
      findings: [`RG4015 ${labelKeys.prepareDownscale}`],
    });
  });
});

describe('grafana.com/rollout-delayed-downscale', () => {
  const mirrored = { [annotationKeys.mirrorName]: 'ingester', [annotationKeys.mirrorKind]: 'ReplicaTemplate' };
  const delayed = (after: string | undefined, url: string | undefined, serviceName = 'ingester') => {
    const annotations = { ...mirrored, ...(after !== undefined && { [delay]: after }), ...(url !== undefined && { [delayedUrl]: url }) };
    const { zone, findings } = adoptZone({ annotations, serviceName });
    return { scaling: zone?.scaling, findings };
  };
  const endpoint = (scheme: string, port: number, path: string) => ({ scheme, port, path, timeout: '5s' });

  it.each([
    ['1h30m', '1h30m'],
    ['1d', '1d'],
    ['1w', '7d'],
    ['90s', '1m30s'],
  ])('waits the Prometheus duration %j', (text, after) => {
    expect(delayed(text, 'http://pod:8080/prepare')).toEqual({
      scaling: { down: { delayed: { after, endpoint: endpoint('http', 8080, '/prepare'), onUnreachable: 'hold' } } },
      findings: [],
    });
  });

  it.each([
    ['http://pod/prepare', endpoint('http', 80, '/prepare')],
    ['https://pod/prepare?force=true#top', endpoint('https', 443, '/prepare?force=true')],
    ['HTTP://pod:8080', endpoint('http', 8080, '/')],
    ['http://pod:/x', endpoint('http', 80, '/x')],
    ['http://[::1]:8080/x', endpoint('http', 8080, '/x')],
    ['http://pod:80?q=1', endpoint('http', 80, '/?q=1')],
  ])('calls the pod at the scheme, port, path and query of %s', (url, expected) => {
    expect(delayed('1h', url).scaling?.down?.delayed?.endpoint).toEqual(expected);
  });

  it('omits user information and reports it without the value', () => {
    const read = delayed('1h', 'http://user:secret@pod:80/x');
    expect([read.scaling?.down?.delayed?.endpoint, read.findings]).toEqual([endpoint('http', 80, '/x'), [`RG4016 ${delayedUrl}`]]);
  });

  it.each([
    ['0', 'http://pod/x'],
    ['', ''],
  ])('is off for the delay %j', (after, url) => {
    expect(delayed(after, url)).toEqual({ scaling: undefined, findings: [] });
  });

  it.each([
    ['1h', undefined, delay],
    ['', 'http://pod/x', delayedUrl],
  ])('is off if one of the two is missing (%j, %j), with a finding', (after, url, field) => {
    expect(delayed(after, url)).toEqual({ scaling: undefined, findings: [`RG4020 ${field}`] });
  });

  it.each(['-1h', '1.5h', '1m1h', 'x', ' 1h', '300y'])('blocks all scaling for the delay %j', (after) => {
    expect(delayed(after, 'http://pod/x')).toEqual({
      scaling: { hold: `${delay} is "${after}", which is not a Prometheus duration such as 12h or 1d` },
      findings: [`RG4005 ${delay}`],
    });
  });

  it.each(['http://pod:http/x', 'http://pod/%zz', ':foo', 'a b:c', 'http://po d/x', 'http://pod/\u0001', 'http://user^@pod/x'])(
    'blocks all scaling for %j, which is not a URL',
    (url) => {
      const { scaling, findings } = delayed('1h', url);
      expect([scaling?.hold?.endsWith('which is not a URL'), scaling?.down, findings]).toEqual([true, undefined, [`RG4006 ${delayedUrl}`]]);
    },
  );

  it.each([
    ['/prepare', 'which is neither http nor https'],
    ['ftp://pod/x', 'which is neither http nor https'],
    ['http:///x', 'which has no host'],
    ['http:opaque', 'which has no host'],
    ['http://pod:70000/x', 'whose port is out of range'],
  ])('blocks only a downscale for %j, a URL without a pod', (url, because) => {
    expect(delayed('1h', url)).toEqual({
      scaling: { down: { hold: `${delayedUrl} is ${JSON.stringify(url)}, ${because}` } },
      findings: [`RG4006 ${delayedUrl}`],
    });
  });

  it('blocks all scaling without a service', () => {
    expect(delayed('1h', 'http://pod/x', '')).toEqual({
      scaling: { hold: 'spec.serviceName is missing, so the pods have no DNS name' },
      findings: ['RG4005 spec.serviceName'],
    });
  });

  it('hides the password in a finding about an invalid URL', () => {
    expect(delayed('1h', 'http://user:secret@pod:x/p').scaling?.hold).toBe(`${delayedUrl} is "http://pod:x/p", which is not a URL`);
  });

  it('has no effect without a mirrored object, with a finding', () => {
    expect(adoptZone({ annotations: { [delay]: '1h', [delayedUrl]: 'http://pod/x' } })).toEqual({
      zone: { name: 'a', statefulSet: 'ingester-zone-a' },
      findings: [`RG4020 ${delay}`],
    });
  });
});
