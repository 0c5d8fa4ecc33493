// Refuses a request before its body is read.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Timers } from '../../cluster/env.ts';

/** An answer without AdmissionReview. */
export interface PlainAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Returns a sentence with a line feed for terminals. */
export function plainText(status: number, sentence: string): PlainAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${sentence}\n` };
}

/** A rest of at most this many bytes is read, and the connection is reused. */
const shortRestBytes = 64 * 1024;
/** Bytes that are read of a longer rest before the connection is closed. */
const maxLingerBytes = 8 * 1024 * 1024;

/**
 * Answers, and discards the rest of the request. Closing a connection while its client sends may lose the answer. The rest of a long body
 * is therefore read for `lingerMs` before the connection is closed.
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  {
    answer,
    isClosing,
    lingerMs,
    timers,
  }: { readonly answer: PlainAnswer; readonly isClosing: boolean; readonly lingerMs: number; readonly timers: Timers },
): void {
  const { 'transfer-encoding': transferEncoding, 'content-length': length = '0' } = request.headers;
  const isRestShort = request.complete || (transferEncoding === undefined && Number(length) <= shortRestBytes);
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    'Content-Type': answer.contentType,
    'Content-Length': body.length,
    'X-Content-Type-Options': 'nosniff',
    ...(isRestShort && !isClosing ? {} : { Connection: 'close' }),
  });
  if (isRestShort) {
    response.end(body);
    request.resume();
    return;
  }
  response.write(body);
  let forgotten = 0;
  const end = (): void => {
    cancel();
    request.off('data', forget).off('end', end).off('close', end);
    response.end();
  };
  const forget = (chunk: Buffer): void => {
    forgotten += chunk.length;
    if (forgotten > maxLingerBytes) end();
  };
  const cancel = timers.after(lingerMs, end);
  request.on('data', forget).once('end', end).once('close', end);
  request.resume();
}
