// How a request is refused before anybody has read its body.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Timers } from '../../cluster/env.ts';

/** An answer without AdmissionReview. */
export interface PlainAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** A sentence, with the line feed that a terminal wants. */
export function plainText(status: number, sentence: string): PlainAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${sentence}\n` };
}

/** A rest of at most so many bytes is taken in, and the connection is used again. */
const shortRestBytes = 64 * 1024;
/** Of a longer rest, before the connection ends. */
const maxLingerBytes = 8 * 1024 * 1024;

/**
 * Answers, and forgets what is still to come of the request. A connection that is closed while its client sends may take the answer with it; therefore the
 * rest of a long body is read for `lingerMs`, and the connection is closed then.
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
