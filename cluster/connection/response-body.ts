// Reads a response: a whole body, or the lines of a watch.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { messageOf } from '../../policies/error-message.ts';

/** Longer error texts are cut off. Lists have no limit, because callers request pages. */
const longestErrorBytes = 1024 * 1024;

const unzip = promisify(gunzip);

/** Rejects if the body is incomplete. */
export async function readBody(response: IncomingMessage): Promise<string> {
  const maxBytes = (response.statusCode ?? 0) >= 400 ? longestErrorBytes : Number.POSITIVE_INFINITY;
  const body = await readBytes(response, maxBytes);
  return (response.headers['content-encoding'] === 'gzip' ? await unzip(body) : body).toString('utf8');
}

function readBytes(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let byteCount = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      byteCount += chunk.length;
      if (byteCount <= maxBytes) return;
      response.destroy();
      resolve(Buffer.concat(chunks).subarray(0, maxBytes));
    });
    response.on('end', () => resolve(Buffer.concat(chunks)));
    response.on('error', reject);
    response.on('close', () => reject(new Error('the answer is incomplete')));
  });
}

/** Joins several headers of one name, as HTTP allows. */
export function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, [value].flat().join(', ')]])),
  );
}

export interface Lines {
  /** Resolves with the reason, never rejects. */
  readonly ended: Promise<string>;
  readonly close: () => void;
}

/**
 * Delivers the lines of an answer, after the caller has its handle. Later bytes stay in the connection, so a slow receiver slows down the
 * server. A receiver that throws ends the stream. An incomplete last line is dropped.
 */
export function readLines(response: IncomingMessage, onLine: (line: string) => void): Lines {
  let isOver = false;
  let settle: (reason: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    settle = resolve;
  });
  const finish = (reason: string): void => {
    if (isOver) return;
    isOver = true;
    response.destroy();
    settle(reason);
  };
  const splitter = new LineSplitter((line) => {
    if (!isOver) onLine(line);
  });
  response.on('end', () => finish(splitter.isInsideLine ? 'the stream ended within a line' : 'the server ended the stream'));
  response.on('error', (error) => finish(`the connection broke: ${error.message}`));
  response.on('close', () => finish('the connection broke'));
  setImmediate(() => {
    response.on('data', (chunk: Buffer) => {
      try {
        splitter.push(chunk);
      } catch (error) {
        finish(`a line could not be processed: ${messageOf(error)}`);
      }
    });
  });
  return { ended, close: () => finish('closed') };
}

/** Many times longer than any object that etcd stores. */
const longestLineBytes = 64 * 1024 * 1024;

const endOfLine = 0x0a;

/** Decodes whole lines, because chunks may cut a character. Copies each byte at most twice. Drops empty lines. */
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

  /** Throws errors of the line receiver, and an Error for a line of more than 64 MiB. */
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
