// The body of a request, read without believing what its headers say of it.
import type { IncomingMessage } from 'node:http';
import { clientGone } from '../review/decide.ts';
import type { Slots } from './slots.ts';

interface ReadBodyOptions {
  readonly maxBodyBytes: number;
  /** A longer body needs one of the slots. */
  readonly bigBodyBytes: number;
  readonly bigBodies: Slots;
  readonly signal: AbortSignal;
}

type ReadBody =
  | {
      readonly bytes: Buffer;
      /** To be called when the body, and what was made of it, is no longer needed. */
      readonly release: () => void;
    }
  | { readonly refused: 413 | 408 | 429; readonly message: string }
  /** The client went in the middle of it. */
  | { readonly gone: true };

/**
 * Reads a body of at most `maxBodyBytes`, counted as it comes: the length that is announced is believed only when it is too long. While a big body waits
 * for its slot nothing more is read of it, so that it stays with its sender. Never rejects, and leaves the rest of a refused body unread.
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
      if (given === undefined) return finish({ refused: 429, message: 'too many big bodies are in hand: send it again later' });
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
  return reason === clientGone ? { gone: true } : { refused: 408, message: 'the body did not come in time' };
}
