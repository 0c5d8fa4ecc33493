// SHA-256 (FIPS 180-4) without I/O: the digest of policies must be the same in the agent, the plugin and the plan of a pull request.

/** The first 32 bits of the fractional parts of the roots of the first primes. */
function fractions(root: (prime: number) => number, count: number): Uint32Array {
  const found: number[] = [];
  for (let candidate = 2; found.length < count; candidate += 1) {
    if (isPrime(candidate)) found.push((root(candidate) % 1) * 2 ** 32);
  }
  return Uint32Array.from(found);
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) if (candidate % divisor === 0) return false;
  return true;
}

const roundConstants = fractions(Math.cbrt, 64);
const initialState = fractions(Math.sqrt, 8);

/** SHA-256 of the text in UTF-8, as 64 hexadecimal digits. */
export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array((((bytes.length + 8) >> 6) + 1) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x2000_0000));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  const state = Uint32Array.from(initialState);
  const schedule = new Uint32Array(64);
  for (let offset = 0; offset < padded.length; offset += 64) digestBlock(state, schedule, view, offset);
  return [...state].map((word) => word.toString(16).padStart(8, '0')).join('');
}

function digestBlock(state: Uint32Array, w: Uint32Array, view: DataView, offset: number): void {
  for (let i = 0; i < 16; i += 1) w[i] = view.getUint32(offset + i * 4);
  for (let i = 16; i < 64; i += 1) {
    const x = at(w, i - 15);
    const y = at(w, i - 2);
    w[i] = at(w, i - 16) + at(w, i - 7) + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10));
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i += 1) {
    const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + at(roundConstants, i) + at(w, i)) >>> 0;
    const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) >>> 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) >>> 0, c, b, a, (first + second) >>> 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => {
    state[index] = at(state, index) + word;
  });
}

function at(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
