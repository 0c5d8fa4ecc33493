// Finds the proxy for a server in HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl does.
import { BlockList, isIP } from 'node:net';

/** Undefined when the server is reached directly. Servers on this machine always are. */
export function environmentProxy(server: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { protocol, hostname, port } = new URL(server);
  const either = (name: string): string => env[name] || env[name.toLowerCase()] || '';
  const proxy = protocol === 'https:' ? either('HTTPS_PROXY') : either('HTTP_PROXY');
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (proxy === '' || isLoopback(host)) return undefined;
  const target = { host, port: port || (protocol === 'https:' ? '443' : '80') };
  const isExempt = either('NO_PROXY')
    .split(',')
    .some((rule) => exempts(rule.trim().toLowerCase(), target));
  if (isExempt) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** A rule is `*`, an address, a range of addresses, or a domain; a domain holds for what lies below it, too. Both may end with a port. */
function exempts(rule: string, { host, port }: { readonly host: string; readonly port: string }): boolean {
  if (rule === '' || rule === '*') return rule === '*';
  if (rule.includes('/')) return isInRange(rule, host);
  const [, bracketed, name = bracketed ?? rule, rulePort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(rule) ?? [];
  if (rulePort !== undefined && rulePort !== port) return false;
  if (isIP(name) !== 0) return name === host;
  const domain = name.replace(/^\*?\./, '');
  return host.endsWith(`.${domain}`) || (host === domain && !name.startsWith('.') && !name.startsWith('*'));
}

function isInRange(rule: string, host: string): boolean {
  const family = isIP(host);
  const [network = '', bits = ''] = rule.split('/');
  if (family === 0 || isIP(network) !== family || !/^\d{1,3}$/.test(bits)) return false;
  const version = family === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  try {
    list.addSubnet(network, Number(bits), version);
  } catch {
    return false;
  }
  return list.check(host, version);
}
