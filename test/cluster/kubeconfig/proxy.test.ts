import { describe, expect, it } from 'vitest';
import { environmentProxy } from '../../../cluster/kubeconfig/kubeconfig.ts';

const proxy = 'http://proxy:3128';

describe('the proxy of the environment', () => {
  it.each([
    ['https://api.example', { HTTPS_PROXY: proxy }, proxy],
    ['https://api.example', { https_proxy: 'proxy:3128' }, proxy],
    ['https://api.example', { HTTP_PROXY: proxy }, undefined],
    ['http://api.example', { HTTP_PROXY: proxy }, proxy],
    ['http://api.example', { HTTPS_PROXY: proxy }, undefined],
    ['https://api.example', { HTTPS_PROXY: '' }, undefined],
    ['https://localhost:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://127.0.0.5:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://[::1]:6443', { HTTPS_PROXY: proxy }, undefined],
  ])('of %s with %o is %s', (server, env, expected) => {
    expect(environmentProxy(server, env)).toBe(expected);
  });

  it.each([
    ['api.example', 'https://api.example', true],
    ['example', 'https://api.example', true],
    ['API.Example', 'https://api.example', true],
    ['.example', 'https://api.example', true],
    ['*.example', 'https://api.example', true],
    ['.api.example', 'https://api.example', false],
    ['*.api.example', 'https://api.example', false],
    ['pi.example', 'https://api.example', false],
    ['other, api.example', 'https://api.example', true],
    ['*', 'https://api.example', true],
    ['api.example:443', 'https://api.example', true],
    ['api.example:6443', 'https://api.example', false],
    ['api.example:6443', 'https://api.example:6443', true],
    ['10.0.0.1', 'https://10.0.0.1', true],
    ['10.0.0.0/8', 'https://10.1.2.3', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['10.0.0.0/99', 'https://10.1.2.3', false],
    ['10.0.0.0/8', 'https://api.example', false],
    ['fd00::/8', 'https://[fd00::1]:6443', true],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', true],
    ['fd00::1', 'https://[fd00::1]', true],
    ['fd00::2', 'https://[fd00::1]', false],
    ['', 'https://api.example', false],
    [' , ', 'https://api.example', false],
  ])('is not used with NO_PROXY %s for %s: %s', (noProxy, server, isExempt) => {
    expect(environmentProxy(server, { HTTPS_PROXY: proxy, NO_PROXY: noProxy })).toBe(isExempt ? undefined : proxy);
  });
});
