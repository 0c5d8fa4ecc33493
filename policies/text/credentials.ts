// Finds credentials in texts, and hides them: in differences, in excerpts of files, in findings and in messages of rules.
import { isHarmless, isHarmlessLiteral, isReferenceName, isSecretName, isSwitch } from './harmless.ts';

/** Shown for a hidden value. */
export const mask = '***';

/** Fields of Kubernetes with the name of a credential and the name of a label or a choice as value. */
const plainFields: ReadonlySet<string> = new Set(['key', 'keys', 'topologyKey', 'sessionAffinity']);

/** Reports whether the text under this key is a credential. A key such as `secretName` has the name of an object. */
export function isSecretKey(key: string): boolean {
  const name = key.replace(/^.*\//, '');
  return isSecretName(name) && !isReferenceName(name) && !plainFields.has(name);
}

/** Returns the value of a variable, header or annotation, and hides it unless it is evidently harmless. */
export function maskLiteral(name: string, value: string): string {
  const shown = isSecretName(name) ? value : maskText(value);
  return isHarmlessLiteral(name, shown) ? shown : mask;
}

/**
 * The patterns of addresses. Each has a part that stays and a part that is hidden. A repetition before the hidden part is bounded or begins
 * with a fixed text, so that the time grows with the length of the text and not with its square: the webhook reads values of any length.
 */
const inAddresses = [
  // The address of an incoming webhook, whose path is a credential: a host or one of the first parts of the path with the word hook.
  /(\bhttps?:\/\/(?:[\w.-]{0,100}hook[\w.:-]{0,100}|[\w.:-]{1,100}(?:\/[\w.~%-]{1,60}){0,4}\/(?:web)?hooks?)\/)([^\s"']+)/gi,
  // The address of a Telegram bot.
  /(\/bot\d{1,20}:)([^\s"'/]+)/g,
  // The user and the password of a URL.
  /(:\/\/)([^/\s"']+)(?=@)/g,
];

/**
 * The name of an assignment such as `password: x`, `--auth.token=x`, `Authorization: Bearer x` and `\"api_key\": \"x\"`, anywhere in a text, and
 * a flag before its value, as in `--password x` and `["--password", "x"]`.
 */
const assignedName = /(?<![\w.-])(?:[\w.-]+(?=\\?["']?[ \t]*[:=])|-{1,2}[a-z][\w.-]*(?=[ \t]+[^\s-]|\\?["']?[ \t]*,))/gi;

/** A quoted value. Without an end, it reaches to the end of the line. Quotes with a backslash are in a quoted text. */
const quoted = String.raw`\\"(?:\\\\\\?[^\n]|[^"\\\n])*(?:\\")?|"(?:\\.|[^"\\\n])*(?:"|$)|'(?:''|[^'\n])*(?:'|$)`;

/**
 * The rest of an assignment: what stays, and the value. A brace before a space or the end of the line begins a mapping. A comma, a semicolon or
 * an ampersand ends a value only before another assignment, a quote or a space.
 */
const assignedValue = new RegExp(
  [
    String.raw`(\\?["']?[ \t]*(?:[:=]=|=>|[:=])[ \t]*(?:[&!]\S{1,100}[ \t]+){0,2}(?:(?:Bearer|Basic|Token)[ \t]+)?)`,
    String.raw`(${quoted}|(?![{[](?:\s|$))(?:[^\s,;&"']|[,;&](?![\w.-]{1,100}=|[\s"']|$))+)`,
  ].join(''),
  'imy',
);

/** The value of a flag: the next word, or the next entry of a list. Another flag and an operator of the shell are no values. */
const flagValue = new RegExp(String.raw`(\\?["']?[ \t]*,[ \t]*|[ \t]+)(?!\\?["']?-|[|<>&;:=])(${quoted}|[^\s"']+)`, 'my');

/** Tokens with a known beginning, and private keys. */
const inTokens = [
  /((?<![\w-]))((?:gh[a-z]_|github_pat_|gl(?:pat|rt|dt|ptt|soat|cbt)-|xox[a-z]-|xapp-|[rs]k_(?:live|test)_|AKIA|ASIA|AIza|eyJ)[\w.~+/=-]{6,})/g,
  /((?<![\w-])sk-)([\w-]{16,})/g,
  /(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)([\s\S]+?)(?=-----END|$)/g,
];

/** The text after a scheme of HTTP authentication. `basic` is also a word, so text after it has a digit or a capital. */
const afterScheme = /(\b(?:Bearer|BEARER|Basic|BASIC)[ \t]+|\b(?:bearer|basic)[ \t]+(?=[a-z.~+/=-]*[\dA-Z_]))([\w.~+/=-]{8,})/g;

type MaskOf = (hidden: string) => string;

function maskAddresses(text: string, maskOf: MaskOf): string {
  const inText = maskMatches(text, inTokens, maskOf);
  if (!inText.includes('/') && !inText.includes('@')) return inText;
  return maskMatches(inText, inAddresses, maskOf).replace(/[^\s"'<>]+/g, (word) => maskUser(maskQuery(word, maskOf), maskOf));
}

/** Hides the user and the password before the address of a database: `user:password@tcp(db:3306)/x`, `user/password@//db:1521`. */
function maskUser(word: string, maskOf: MaskOf): string {
  const at = word.lastIndexOf('@');
  if (at <= 0 || word[at - 1] === '*' || !/^@(?!sha\d+:)(?:\w{0,20}\(|\/|[\w.-]{1,200}:\d)/.test(word.slice(at, at + 250))) return word;
  const start = /^-{0,2}[\w.-]*=/.exec(word)?.[0].length ?? 0;
  const user = word.slice(start, at);
  return /[:/]./.test(user) ? `${word.slice(0, start)}${maskOf(user)}${word.slice(at)}` : word;
}

/** Reports whether the value of a name of a credential can be shown. A part that is already hidden stays. */
function isPlainValue(name: string, value: string): boolean {
  const plain = withoutClosing(value.trim()).replace(/^["']|["']$/g, '');
  return isSwitch(plain) || /^[*&]+$/.test(plain) || ((isReferenceName(name) || plainFields.has(name)) && isHarmless(plain));
}

/** Removes the brackets at the end of a text. A pattern for them takes a time with the square of the length. */
function withoutClosing(text: string): string {
  let end = text.length;
  while (end > 0 && ')]}'.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** Hides what is assigned to the names of credentials, except booleans, durations, and the harmless names of objects and files. */
function maskAssigned(text: string, maskOf: MaskOf): string {
  const parts: string[] = [];
  let end = 0;
  for (const { 0: name, index } of text.matchAll(assignedName)) {
    if (index < end || !isSecretName(name)) continue;
    const [whole, kept = '', value = ''] = valueAfter(text, name, index + name.length) ?? [];
    if (whole === undefined || isPlainValue(name, value)) continue;
    parts.push(text.slice(end, index), name, kept, maskOf(value));
    end = index + name.length + whole.length;
  }
  return parts.join('') + text.slice(end);
}

function valueAfter(text: string, name: string, at: number): RegExpExecArray | null {
  assignedValue.lastIndex = at;
  flagValue.lastIndex = at;
  return assignedValue.exec(text) ?? (name.startsWith('-') ? flagValue.exec(text) : null);
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
  return maskMatches(maskAssigned(maskAddresses(text, maskOf), maskOf), [afterScheme], maskOf);
}

/**
 * Hides the values that are assigned to names of credentials, the user part and the query of URLs, the path of webhooks, tokens with a known
 * form, private keys, and what follows a scheme of HTTP authentication.
 */
export function maskText(text: string): string {
  return maskAll(text, () => mask);
}

const stars: MaskOf = (hidden) => '*'.repeat(hidden.length);

/** Returns the text under a key with credentials masked at the same length. */
export function withoutCredentialsOf(key: string, text: string): string {
  return isSecretKey(key) ? stars(text) : withoutCredentials(text);
}

/**
 * Returns a part of a file with credentials masked at the same length: excerpts appear in logs and comments. The name of a variable or a header
 * can be on another line, so each `value` is hidden.
 */
export function withoutCredentials(text: string): string {
  const inMaps = text.replace(/(\bannotations["']?:[ \t]*\{)([^}]*)/g, (_, kept, entries) => `${kept}${withoutValues(entries)}`);
  return maskAll(inMaps, stars).replace(blockField, hideField).replace(field, hideField);
}

/** Hides the value of a field: each `value`, and what `maskAll` left of a credential. */
function hideField(whole: string, name: string, colon: string, value: string): string {
  const isHidden = name === 'value' || (isSecretName(name) && !isMasked(value));
  if (!isHidden || isPlainValue(name, value)) return whole;
  const end = value.trimEnd().length;
  return `${name}${colon}${stars(value.slice(0, end))}${value.slice(end)}`;
}

/** Reports whether `maskAll` hid the whole value: it keeps tags, anchors and the scheme of HTTP authentication. */
function isMasked(value: string): boolean {
  return /^(?:[!&]\S+\s+)*(?:(?:Bearer|Basic|Token)\s+)?\*+\s*$/i.test(value);
}

/** The colon of a field with a text in YAML or JSON, and the spaces around it. A brace or a bracket after it begins a map or a list. */
const fieldColon = String.raw`(["'][ \t]*:(?![ \t]*[{[])[ \t]*|[ \t]*:(?![ \t]*[{[])[ \t]+)`;

/** A field with a text in YAML or JSON. Unlike in other texts, the value has spaces. */
const field = new RegExp(
  [
    String.raw`(?<![\w.-])([\w.-]+)${fieldColon}`,
    String.raw`((?:[&!]\S{1,100}[ \t]+){0,2}(?:"(?:\\.|[^"\\])*"?|'(?:''|[^'])*'?|(?:(?!\s#)[^,}\]\n])+))`,
  ].join(''),
  'g',
);

/** A field at the beginning of a line: its value reaches to the end of the line or to a comment, with commas and braces. */
const blockField = new RegExp(
  [
    String.raw`(?<![\w.-])(?=[\w.-])(?<=^[ \t-]{0,100}["']?)([\w.-]+)${fieldColon}`,
    String.raw`((?:[&!]\S{1,100}[ \t]+){0,2}(?:"(?:\\.|[^"\\\n])*"|'(?:''|[^'\n])*'|(?!["'])(?:(?!\s#).)+)(?=\s*(?:#|$))|.+)`,
  ].join(''),
  'gm',
);

function hideWords(text: string): string {
  return text.replace(/[^\s{}]+/g, stars);
}

/** Reports whether a line ends with the flag of a credential, so that the next line can have its value. */
export function endsWithSecretFlag(line: string): boolean {
  const flag = /(?<![\w.-])-{1,2}[a-z][\w.-]*(?=["']?,?[ \t]*$)/i.exec(line)?.[0];
  return flag !== undefined && isSecretName(flag) && !isReferenceName(flag);
}

/** Returns a line of a file in which the values of all keys are masked at the same length. */
export function withoutValues(text: string): string {
  const colon = /:(?=\s|$)/.exec(text);
  if (colon === null) return hideWords(text);
  const rest = text.slice(colon.index + 1);
  // In a map on one line, the keys stay.
  const shown = rest.split(/([^\s{},:"']+["']?:(?=\s)|\{\s*)/).map((part, index) => (index % 2 === 0 ? hideWords(part) : part));
  return `${text.slice(0, colon.index + 1)}${shown.join('')}`;
}

/** Returns a message with the credentials of addresses masked at the same length: a message quotes texts of the file. */
export function withoutAddressCredentials(text: string): string {
  return maskAddresses(text, stars);
}
