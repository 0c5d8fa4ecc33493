// Decides by names and by values which literal values can be credentials. Unknown values count as credentials.

/** The names of credentials, in lower case with hyphens between their words. */
const credentialName = new RegExp(
  [
    'passw|passphrase|passcode|mnemonic|secret|token|credential|authorization|cookie|api-?key|(?:access|private|signing)-?key|connection-?string',
    String.raw`(?:^|-)(?:[a-z]*(?:pass|pwd|creds?|keys?|auth)|pw|pat|salt|otp|sas|sig|signature|sessions?|licen[sc]e|dsn)\d*(?:-|$)`,
    String.raw`(?:^|-)(?:private|(?:web)?hooks?|jwt|psk)\d*(?:-|$)`,
    '(?:^|-)(?:access|pin|seed)$',
  ].join('|'),
);

/** Reports whether a name of a variable, flag, header or annotation is that of a credential: `DB_PASS`, `X-Auth`, `accountKey`. */
export function isSecretName(name: string): boolean {
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1-$2').replace(/([A-Z])([A-Z][a-z])/g, '$1-$2');
  return credentialName.test(words.toLowerCase().replace(/[^a-z\d]+/g, '-'));
}

/** Reports whether a name is that of an object, or of a file with a credential: `secretName`, `TLS_KEY_PATH`. */
export function isReferenceName(name: string): boolean {
  return /(?:name|ref|file|path|dir)$/i.test(name);
}

/** Reports whether a value is no credential under any name: empty, a boolean or a duration. */
export function isSwitch(value: string): boolean {
  return /^(?:true|false|(?:\d{1,4}(?:ms|[smhd]))*)$/.test(value);
}

/**
 * The words of harmless values: numbers with units, words with a short number (`gp3`, `1a`), `INFO`, `OnDelete`. A mix of letters and digits,
 * or a long run of letters, can be a credential.
 */
const harmlessWord =
  /^(?:\d{1,19}[A-Za-z]{0,3}|(?:\d{1,4}(?:[mun]?s|[mhdwy])){1,4}|v?\d{1,4}|[a-z]{1,15}\d{0,4}[a-z]{0,2}|[A-Z]{1,15}\d?|[A-Z]?[a-z]{1,15}(?:[A-Z][a-z]{2,15}|[A-Z]{2,3}){0,3})$/;

/** The parts that every value may have: references to variables, times, hidden parts and the special flags of Java. */
const harmlessPart =
  /\$\(\w{1,100}\)|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)|(?:[\w.~%-]{1,40}=)?\*{3}@?|-XX:[+-]?[A-Z]\w{1,60}(?=\s|=|$)|-X(?=[a-z])/g;

/** A user and a password such as `user:pw1`. After a colon, `:9093` is a port, and `:v2` a version. */
const userAndPassword = /(?:^|[\s,;=])[\w.@-]+:(?!v\d)[a-z]+\d/i;

/** Reports whether a value consists of words, numbers and the separators of versions, paths, addresses, lists and flags. */
export function isHarmless(value: string): boolean {
  if (value.length > 1000 || userAndPassword.test(value)) return false;
  const words = value.replace(harmlessPart, '-').split(/[-_./:=,;%+*?&#]|\s+(?=-)/);
  return words.every((word) => word === '' || harmlessWord.test(word));
}

/** Reports whether a literal value with this name can be shown. */
export function isHarmlessLiteral(name: string, value: string): boolean {
  if (isSwitch(value)) return true;
  if (isSecretName(name)) return isReferenceName(name) && isHarmless(value);
  return isHarmless(value) && !/passw|secret|token|credential/i.test(value);
}
