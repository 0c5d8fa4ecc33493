// Reads the audit log of the API server: the requests with their users, and the responses.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** One answered request. Writes have their bodies, except those of Secrets. */
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

/** The audit log of one API server. Each line is parsed once. */
export class AuditLog {
  readonly #file: string;
  readonly #events: AuditEvent[] = [];
  #readBytes = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Returns all events up to a request that is sent now. The server writes a line after its response, so the last lines may be missing at
   * first. All earlier lines are there when the line of a later request is there.
   */
  async read(send: (path: string) => Promise<unknown>): Promise<readonly AuditEvent[]> {
    const mark = `/version?mark=${process.hrtime.bigint()}`;
    await send(mark);
    for (const endsAt = Date.now() + timeoutMs; Date.now() < endsAt; await delay(10)) {
      this.#readMore();
      const end = this.#events.findLastIndex(({ requestURI }) => requestURI === mark);
      if (end >= 0) return this.#events.slice(0, end);
    }
    throw new Error(`the audit log ${this.#file} did not show ${mark} in ${timeoutMs / 1000} s`);
  }

  /** Adds the complete lines that were written since the last call. */
  #readMore(): void {
    const file = openSync(this.#file, 'r');
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#readBytes);
      const length = readSync(file, bytes, 0, bytes.length, this.#readBytes);
      const whole = bytes.subarray(0, bytes.subarray(0, length).lastIndexOf(10) + 1);
      this.#readBytes += whole.length;
      for (const line of whole.toString('utf8').split('\n')) if (line !== '') this.#events.push(JSON.parse(line) as AuditEvent);
    } finally {
      closeSync(file);
    }
  }
}
