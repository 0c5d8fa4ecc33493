// Kubernetes quantities (`500m`, `1Gi`), compared as the API server stores them.

const decimalPower: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binaryPower: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };

interface Quantity {
  /** The API server keeps the notation: `1Gi` and `1073741824` stay different texts and make different pod templates. */
  readonly notation: 'decimal' | 'binary' | 'exponent';
  /** The value is numerator divided by denominator. */
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** Reports whether the API server stores two quantities as the same text: `1024Mi` and `1Gi`, `1000m` and `1`. */
export function sameQuantity(left: unknown, right: unknown): boolean {
  const a = parseQuantity(left);
  const b = parseQuantity(right);
  if (a === undefined || b === undefined) return false;
  return a.notation === b.notation && a.numerator * b.denominator === b.numerator * a.denominator;
}

function parseQuantity(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const match = /^([+-]?)(\d{1,30})(?:\.(\d{0,30}))?(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)$/.exec(String(value).trim());
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent, suffix = ''] = match;
  const digits = BigInt(`${sign === '-' ? '-' : ''}${whole}${fraction}`);
  const binary = binaryPower[suffix];
  const power = (exponent === undefined ? (decimalPower[suffix] ?? 0) : Number(exponent.slice(1))) - fraction.length;
  const numerator = digits * 2n ** BigInt(binary ?? 0) * 10n ** BigInt(Math.max(power, 0));
  const notation = binary !== undefined ? 'binary' : exponent !== undefined ? 'exponent' : 'decimal';
  return { notation, numerator, denominator: 10n ** BigInt(Math.max(-power, 0)) };
}
