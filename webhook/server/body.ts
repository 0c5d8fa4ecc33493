// Reads the body of a request without trusting its headers.
import type { IncomingMessage } from 'node:http';
import { clientGone } from '../review/decide.ts';
import type { Slots } from './slots.ts';

interface ReadBodyOptions {
  readonly maxBodyBytes: number;
  /** A longer body needs a slot. */
  readonly bigBodyBytes: number;
  readonly bigBodies: Slots;
  readonly signal: AbortSignal;
}

type ReadBody =
  | {
      readonly bytes: Buffer;
      /** Call it when the body and everything derived from it is released. */
      readonly release: () => void;
    }
  | { readonly refused: 413 | 408 | 429; readonly message: string }
  /** The client disconnected within the body. */
  | { readonly gone: true };

/**
 * Reads a body of at most `maxBodyBytes`, counted while reading: the announced length is trusted only if it is too long. A big body that
 * waits for its slot is not read further, so it stays with the client. Never rejects, and leaves the rest of a refused body unread.
 */
export function readBody(request: IncomingMessage, options: ReadBodyOptions): Promise<ReadBody> {
  const { maxBodyBytes, bigBodyBytes, bigBodies, signal } = options;
  const tooLong = { refused: 413, message: `the body is longer than ${maxBodyBytes} bytes` } as const;
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return Promise.resolve(tooLong);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isOver = false;
    let slot: { readonly release: () => void } | 'asked for' | undefined;
    const release = (): void => {
      if (typeof slot === 'object') slot.release();
    };
    const finish = (result: ReadBody): void => {
      if (isOver) return;
      isOver = true;
      request.off('data', take).off('end', end).off('close', lost);
      signal.removeEventListener('abort', stop);
      request.pause();
      if (!('bytes' in result)) release();
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      chunks.push(chunk);
      if (length > maxBodyBytes) finish(tooLong);
      else if (length > bigBodyBytes && slot === undefined) void askForSlot();
    };
    const askForSlot = async (): Promise<void> => {
      slot = 'asked for';
      request.pause();
      const given = await bigBodies.take(signal);
      if (given === undefined) return finish({ refused: 429, message: 'too many big bodies at once; retry later' });
      slot = { release: given };
      if (isOver) given();
      else request.resume();
    };
    const end = (): void => finish({ bytes: Buffer.concat(chunks, length), release });
    const lost = (): void => finish({ gone: true });
    const stop = (): void => finish(stopped(signal));
    if (signal.aborted) return finish(stopped(signal));
    signal.addEventListener('abort', stop, { once: true });
    request.on('data', take).once('end', end).once('close', lost);
  });
}

function stopped({ reason }: AbortSignal): ReadBody {
  return reason === clientGone ? { gone: true } : { refused: 408, message: 'the body did not arrive in time' };
}
