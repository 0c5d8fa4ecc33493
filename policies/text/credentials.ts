// Finds credentials in texts, and hides them: in differences, in excerpts of files, in findings and in messages of rules.

/** Shown for a hidden value. */
export const mask = '***';

/** Parts of the names of credentials: of variables, flags, headers, keys of annotations and lines of configuration files. */
const names = 'passw|token|secret|credential|(?:private|api|access|signing).?key|authorization|cookie';
const name = new RegExp(names, 'i');

export function isSecretName(text: string): boolean {
  return name.test(text);
}

/** Reports whether the text under this key is a credential. A key such as `secretName` has the name of an object. */
export function isSecretKey(key: string): boolean {
  return isSecretName(key.replace(/^.*\//, '')) && !/(?:name|ref)$/i.test(key);
}

/**
 * The patterns of addresses. Each has a part that stays and a part that is hidden. A repetition before the hidden part is bounded or begins
 * with a fixed text, so that the time grows with the length of the text and not with its square: the webhook reads values of any length.
 */
const inAddresses = [
  // The address of an incoming webhook, whose path is a credential: a host or a first part of the path with the word hook.
  /(\bhttps?:\/\/(?:[\w.-]{0,100}hook[\w.:-]{0,100}|[\w.:-]{1,100}\/(?:web)?hooks?)\/)([^\s"']+)/gi,
  // The user and the password of a URL.
  /(:\/\/)([^/\s"']+)(?=@)/g,
];

/**
 * Assignments such as `password: x`, `--auth.token=x`, `Authorization: Bearer x` and `"api_key": "x"`, anywhere in a text. A name that ends
 * with `Name` or `Ref` is that of an object. A brace before a space or the end of the line begins a mapping. A quoted value without an end
 * reaches to the end of the line. A comma, a semicolon or an ampersand ends a value only before another assignment, a quote or a space.
 */
const assignment = new RegExp(
  [
    String.raw`((?:${names})[\w.-]{0,100}(?<!name|ref)["']?[ \t]*[:=][ \t]*(?:[&!]\S{1,100}[ \t]+){0,2}(?:(?:Bearer|Basic|Token)[ \t]+)?)`,
    String.raw`("(?:\\.|[^"\\\n])*(?:"|$)|'(?:''|[^'\n])*(?:'|$)`,
    String.raw`|(?![{[](?:\s|$))(?:[^\s,;&"']|[,;&](?![\w.-]{1,100}=|[\s"']|$))+)`,
  ].join(''),
  'gim',
);

/** The text after a scheme of HTTP authentication. `basic` is also a word, so text after it has a digit or a capital. */
const afterScheme = /(\b(?:Bearer|BEARER|Basic|BASIC)[ \t]+|\b(?:bearer|basic)[ \t]+(?=[a-z.~+/=-]*[\dA-Z_]))([\w.~+/=-]{8,})/g;

type MaskOf = (hidden: string) => string;

function maskAddresses(text: string, maskOf: MaskOf): string {
  if (!text.includes('/')) return text;
  return maskMatches(text, inAddresses, maskOf).replace(/[^\s"'<>]+/g, (word) => maskQuery(word, maskOf));
}

function maskMatches(text: string, patterns: readonly RegExp[], maskOf: MaskOf): string {
  return patterns.reduce((masked, pattern) => masked.replace(pattern, (_, kept, hidden) => `${kept}${maskOf(hidden)}`), text);
}

/** Hides the values of all parameters in the query and the fragment of a URL or a path. A signature or a code has any name. */
function maskQuery(word: string, maskOf: MaskOf): string {
  const slash = word.indexOf('/');
  const start = slash < 0 ? -1 : word.indexOf('?', slash);
  if (start < 0) return word;
  const hide = (_: string, sign: string, parameter = '', value = ''): string => `${sign}${parameter}${maskOf(value)}`;
  return word.slice(0, start) + word.slice(start).replace(/([?&#])([^?&#=]*=)?([^?&#]+)/g, hide);
}

function maskAll(text: string, maskOf: MaskOf): string {
  return maskMatches(maskAddresses(text, maskOf), [assignment, afterScheme], maskOf);
}

/**
 * Hides the values that are assigned to names of credentials, the user part and the query of URLs, the path of webhooks, and what follows a
 * scheme of HTTP authentication.
 */
export function maskText(text: string): string {
  return maskAll(text, () => mask);
}

const stars: MaskOf = (hidden) => '*'.repeat(hidden.length);

/** Returns the text under a key with credentials masked at the same length. */
export function withoutCredentialsOf(key: string, text: string): string {
  return isSecretKey(key) ? stars(text) : withoutCredentials(text);
}

/** Returns a part of a file with credentials masked at the same length: excerpts appear in logs and comments. */
export function withoutCredentials(text: string): string {
  return maskAll(text, stars);
}

/** Returns a message with the credentials of addresses masked at the same length: a message quotes texts of the file. */
export function withoutAddressCredentials(text: string): string {
  return maskAddresses(text, stars);
}
