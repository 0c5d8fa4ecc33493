// Parses URLs as Go's net/url does, for endpoints and addresses in adopted and converted objects.

export interface UrlParts {
  /** The scheme in lower case; empty if absent. */
  readonly scheme: string;
  readonly hasUserInformation: boolean;
  /** The port as digits; empty if absent. */
  readonly port: string;
  /** The path and query after the host, without the fragment. */
  readonly pathAndQuery: string;
  /** True if the URL has a host, which a pod name can replace. */
  readonly hasHost: boolean;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses exactly these.
const controlCharacter = /[\u0000-\u001f\u007f]/;
const brokenEscape = /%(?![0-9a-fA-F]{2})/;
const schemePattern = /^([a-zA-Z][a-zA-Z0-9+.-]*):/;

/** Returns the parts of a URL; undefined for a text that Go's url.Parse refuses, and for percent signs in a host name. */
export function urlParts(text: string): UrlParts | undefined {
  if (controlCharacter.test(text)) return undefined;
  const [beforeFragment = '', ...fragment] = text.split('#');
  if (beforeFragment.startsWith(':') || brokenEscape.test(fragment.join('#'))) return undefined;
  const scheme = schemePattern.exec(beforeFragment)?.[1] ?? '';
  const rest = scheme === '' ? beforeFragment : beforeFragment.slice(scheme.length + 1);
  const [beforeQuery = ''] = rest.split('?', 1);
  const query = rest.slice(beforeQuery.length);
  const [, authority, path = ''] = /^\/\/([^/]*)(.*)$/s.exec(beforeQuery) ?? [undefined, undefined, beforeQuery];
  const isOpaque = scheme !== '' && !beforeQuery.startsWith('/');
  if (!isOpaque && brokenEscape.test(path)) return undefined;
  // Without a scheme, Go refuses a colon in the first segment, because `a:b` could be a scheme.
  if (scheme === '' && !path.startsWith('/') && (path.split('/', 1)[0] ?? '').includes(':')) return undefined;
  const address = authority === undefined ? { hasUserInformation: false, port: '', hasHost: false } : authorityParts(authority);
  return address && { scheme: scheme.toLowerCase(), ...address, pathAndQuery: path + query };
}

function authorityParts(authority: string): Pick<UrlParts, 'hasUserInformation' | 'port' | 'hasHost'> | undefined {
  const at = authority.lastIndexOf('@');
  const userInformation = at < 0 ? '' : authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(userInformation) || brokenEscape.test(userInformation)) return undefined;
  const [, host, port] = /^(\[[^\]]*\]|[^:]*|.*(?=:))(?::(\d*))?$/.exec(authority.slice(at + 1)) ?? [];
  // A host has no spaces. Percent signs are accepted only in the zone of an IPv6 address; Go also decodes them in host names.
  if (host === undefined || !/^(?:\[[0-9a-fA-F:.]+(?:%25[^\s%]+)?\]|[^\s[\]\\^`{|}%]*)$/.test(host)) return undefined;
  return { hasUserInformation: at >= 0, port: port ?? '', hasHost: host !== '' };
}

/** Returns a path and query with percent-encoding for white space, `@` and backslashes, which an endpoint does not accept. */
export function encodedPath(pathAndQuery: string): string {
  return pathAndQuery.replace(/[\s@\\]/gu, (character) => (character === '@' ? '%40' : encodeURIComponent(character)));
}

/** An http or https address as policy files write it. */
interface Address {
  /** The address without user, query, fragment and slashes at its end. */
  readonly url: string;
  readonly host: string;
  readonly hasUser: boolean;
  /** True if the address has a query or a fragment. */
  readonly hasQuery: boolean;
}

/** Returns the address without credentials, query and fragment; undefined if the text is not a valid http or https URL with a host. */
export function addressOf(text: string): Address | undefined {
  const parts = urlParts(text);
  const [, user, place = '', path = '', rest = ''] = /^[a-zA-Z]+:\/\/([^/?#]*@)?([^/?#@]+)([^?#]*)(.*)$/s.exec(text) ?? [];
  if (parts === undefined || !parts.hasHost || (parts.scheme !== 'http' && parts.scheme !== 'https')) return undefined;
  const url = `${parts.scheme}://${place}${path.replace(/\/+$/, '')}`;
  return { url, host: place.replace(/:\d*$/, ''), hasUser: user !== undefined, hasQuery: rest !== '' };
}
