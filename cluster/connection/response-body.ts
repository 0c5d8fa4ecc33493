// Reads the body of a response for the transport: as one text, or as the lines of a watch.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { messageOf } from '../../policies/error-message.ts';

/** The longest body of an error; the rest is cut off. Other bodies have no limit, because callers request lists in pages. */
const longestErrorBytes = 1024 * 1024;

const unzip = promisify(gunzip);

/** Returns the decompressed body. Rejects if the body is incomplete. */
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

/** Returns the headers of a response. Joins several values of one header with commas, as HTTP allows. */
export function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, [value].flat().join(', ')]])),
  );
}

export interface Lines {
  /** Resolves with the reason when the lines end. Never rejects. */
  readonly ended: Promise<string>;
  readonly close: () => void;
}

/**
 * Passes the lines of a response to `onLine`, but not before this function has returned. While `onLine` runs, later bytes stay in the
 * connection, so a slow receiver slows down the server. An exception of `onLine` ends the stream. An incomplete last line is dropped.
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

/** The longest line. Objects in etcd are many times smaller. */
const longestLineBytes = 64 * 1024 * 1024;

const endOfLine = 0x0a;

/** Splits chunks into lines. Decodes complete lines only, because a chunk may end inside a character. Drops empty lines. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  #partial: Buffer[] = [];
  #partialBytes = 0;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  get isInsideLine(): boolean {
    return this.#partialBytes > 0;
  }

  /** Passes on each line that the chunk completes. Throws the errors of `onLine`, and an Error for a line of more than 64 MiB. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(endOfLine); end !== -1; end = chunk.indexOf(endOfLine, start)) {
      const line = this.#complete(chunk.subarray(start, end));
      start = end + 1;
      if (line !== '') this.#onLine(line);
    }
    if (start === chunk.length) return;
    this.#partial.push(chunk.subarray(start));
    this.#partialBytes += chunk.length - start;
    if (this.#partialBytes > longestLineBytes) throw new Error(`a line is longer than ${longestLineBytes / 1024 / 1024} MiB`);
  }

  #complete(end: Buffer): string {
    if (this.#partialBytes === 0) return end.toString('utf8');
    const line = Buffer.concat([...this.#partial, end]).toString('utf8');
    this.#partial = [];
    this.#partialBytes = 0;
    return line;
  }
}
