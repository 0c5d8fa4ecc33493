// What the API server wrote down about the requests that it answered: who asked for what, and what it sent back.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** One answered request. Bodies are there for writes, except those of Secrets. */
export interface AuditEvent {
  readonly auditID: string;
  readonly stage: 'ResponseStarted' | 'ResponseComplete' | 'Panic';
  readonly requestURI: string;
  readonly verb: string;
  readonly user: { readonly username: string; readonly groups?: readonly string[] };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly apiGroup?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly reason?: string };
  readonly requestObject?: unknown;
  readonly responseObject?: unknown;
  /** Instants with microseconds, RFC 3339. */
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

const timeoutMs = 10_000;

/**
 * Reads the log up to a request that is sent now. A line is written after its reply, so a reader who came at once could miss the last ones;
 * once the line of a later request is there, so are they.
 */
export async function readAuditLog(file: string, send: (path: string) => Promise<unknown>): Promise<readonly AuditEvent[]> {
  const mark = `/version?mark=${process.hrtime.bigint()}`;
  await send(mark);
  for (const endsAt = Date.now() + timeoutMs; Date.now() < endsAt; await delay(10)) {
    const lines = readFileSync(file, 'utf8').split('\n');
    const end = lines.findLastIndex((line) => line.includes(mark));
    if (end >= 0) return lines.slice(0, end).map((line) => JSON.parse(line) as AuditEvent);
  }
  throw new Error(`the audit log ${file} did not show ${mark} in ${timeoutMs / 1000} s`);
}
