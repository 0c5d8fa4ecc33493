// Splits a stream of bytes into lines.

/** Longer than any object that etcd stores, many times over: more without an end of line is no watch. */
const longestLineBytes = 64 * 1024 * 1024;

const endOfLine = 0x0a;

/**
 * Bytes are made text a whole line at a time, so a character that is cut in two between pieces comes out whole. Each byte is copied at most
 * twice, however many pieces a line has. Empty lines are left out.
 */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  #begun: Buffer[] = [];
  #begunBytes = 0;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  /** Reports whether a line has begun and not ended. */
  get isInsideLine(): boolean {
    return this.#begunBytes > 0;
  }

  /** @throws errors of the line receiver, and an Error for an endless line */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(endOfLine); end !== -1; end = chunk.indexOf(endOfLine, start)) {
      const line = this.#whole(chunk.subarray(start, end));
      start = end + 1;
      if (line !== '') this.#onLine(line);
    }
    if (start === chunk.length) return;
    this.#begun.push(chunk.subarray(start));
    this.#begunBytes += chunk.length - start;
    if (this.#begunBytes > longestLineBytes) throw new Error(`a line is longer than ${longestLineBytes / 1024 / 1024} MiB`);
  }

  #whole(end: Buffer): string {
    if (this.#begunBytes === 0) return end.toString('utf8');
    const line = Buffer.concat([...this.#begun, end]).toString('utf8');
    this.#begun = [];
    this.#begunBytes = 0;
    return line;
  }
}
