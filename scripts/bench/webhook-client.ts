// Sends load like an API server: each request is sent at its time, even if earlier requests are not answered yet.
import { Agent, request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { type AskedReview, bigPrefix, reviewsOf, type Scenario, warmPrefix } from './webhook-reviews.ts';

export interface LoadOptions {
  readonly port: number;
  /** The trusted authorities (PEM). */
  readonly ca: readonly string[];
  readonly scenario: Scenario;
  /** Requests per second, and the seconds of the load. */
  readonly rate: number;
  readonly seconds: number;
  /** One of this many requests is big; absent: no request is. */
  readonly bigEvery?: number;
  /** True if answers must have the expected verdict. A bare server may give any answer. */
  readonly areJudged: boolean;
}

export interface LoadReport {
  readonly asked: number;
  /** From the first byte of the request to the last byte of the answer, in milliseconds, for requests of 20 KiB. */
  readonly answerMs: readonly number[];
  /** The same for requests of 3 MiB. */
  readonly bigAnswerMs: readonly number[];
  /** Number of requests without an answer, or with an unexpected one. */
  readonly failed: number;
  /** The problems of the first of these requests. */
  readonly problems: readonly string[];
  /** Delay of the last request after its time, in milliseconds. A large value means that the client was too slow. */
  readonly lateMs: number;
  /** Number of TLS handshakes, and of different certificates in them. */
  readonly connections: number;
  readonly certificates: number;
}

/** Number of kept connections, as of a busy API server. With more, every pause of the machine would cause many handshakes at once. */
const connectionLimit = 32;
/** Limits the unanswered requests. Beyond it the client waits, and the load is late. */
const maxInHand = 400;
/** Duration and connections of the requests before the measurement. They make Node.js compile the code and open the connections. */
const warmSeconds = 1;
const warmConnections = 8;
/**
 * Parts of the load after which it pauses without open requests, so that the memory of the server can be measured. All are in the second
 * half.
 */
const restsAt = [0.5, 0.6, 0.7, 0.8, 0.9, 1] as const;
/** Number of pauses in each load. */
export const restCount = restsAt.length;
/** The server changes its certificate at this part of the load, between two pauses and without waiting for one. */
const rotatesAt = 0.55;
/** From this part on the client opens new connections, so that a short load uses the new certificate too. */
const renewsAt = 0.65;
const maxProblems = 5;
const leastCount = 20;
/** Longer than any deadline of the server. */
const longestMs = 15_000;

/** Receives the points of the load at which the server must act. */
interface LoadListener {
  readonly rotate: () => void;
  /** The load pauses until the promise resolves. */
  readonly rest: () => Promise<void>;
}

/** Resolves when every request was answered or failed. */
export async function driveLoad(options: LoadOptions, { rotate, rest }: LoadListener): Promise<LoadReport> {
  const { scenario, rate, bigEvery = Number.POSITIVE_INFINITY } = options;
  const small = reviewsOf(scenario);
  const big = Number.isFinite(bigEvery) ? reviewsOf(scenario, { areBig: true }) : [];
  const count = loadCount(options);
  const client = new Client(options);
  const answers = new Answers(client);
  await answers.warm([...warmReviews(small, rate), ...warmReviews(big, big.length)]);
  let bigCount = 0;
  const nextReview = (index: number): { readonly review: AskedReview | undefined; readonly id: string } => {
    const isBig = index % bigEvery === bigEvery - 1;
    const review = isBig ? big[bigCount++ % big.length] : small[index % small.length];
    return { review, id: `${isBig ? bigPrefix : ''}${index}` };
  };
  let beganMs = performance.now();
  let lateMs = 0;
  const rests = new Set(restsAt.map((part) => Math.round(count * part)));
  let all: Promise<void>[] = [];
  for (let index = 0; index < count; index += 1) {
    const dueMs = beganMs + (index * 1000) / rate;
    if (performance.now() < dueMs) await delay(dueMs - performance.now());
    while (answers.inHand >= maxInHand) await delay(1);
    lateMs = performance.now() - dueMs;
    if (index === Math.floor(count * rotatesAt)) rotate();
    if (index === Math.floor(count * renewsAt)) client.renew();
    const { review, id } = nextReview(index);
    if (review !== undefined) all.push(answers.ask(review, id));
    if (!rests.has(index + 1)) continue;
    await Promise.all(all);
    all = [];
    const restedMs = performance.now();
    await rest();
    beganMs += performance.now() - restedMs;
  }
  client.close();
  const { connections, certificates } = client;
  const { answerMs, bigAnswerMs, failed, problems } = answers;
  return { asked: count, answerMs, bigAnswerMs, failed, problems, lateMs, connections, certificates: certificates.size };
}

/** Measures and judges the answers of a load. */
class Answers {
  readonly answerMs: number[] = [];
  readonly bigAnswerMs: number[] = [];
  readonly problems: string[] = [];
  failed = 0;
  /** Requests without an answer so far. */
  inHand = 0;
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async warm(reviews: readonly AskedReview[]): Promise<void> {
    const left = [...reviews];
    const warmUp = async (): Promise<void> => {
      for (let review = left.pop(); review !== undefined; review = left.pop()) {
        this.#note(await this.#client.ask(review, `${warmPrefix}${left.length}`));
      }
    };
    await Promise.all(Array.from({ length: warmConnections }, warmUp));
  }

  async ask(review: AskedReview, uid: string): Promise<void> {
    this.inHand += 1;
    const startedMs = performance.now();
    const problem = await this.#client.ask(review, uid);
    (uid.startsWith(bigPrefix) ? this.bigAnswerMs : this.answerMs).push(performance.now() - startedMs);
    this.inHand -= 1;
    this.#note(problem);
  }

  #note(problem: string | undefined): void {
    if (problem === undefined) return;
    this.failed += 1;
    if (this.problems.length < maxProblems) this.problems.push(problem);
  }
}

function warmReviews(reviews: readonly AskedReview[], count: number): readonly AskedReview[] {
  return reviews.length === 0
    ? []
    : Array.from({ length: Math.ceil(count * warmSeconds) }, (_, index) => reviews[index % reviews.length] ?? []).flat();
}

/** Returns the number of requests of a load without the warm-up; at least as many as the pauses need. */
export function loadCount({ rate, seconds }: Pick<LoadOptions, 'rate' | 'seconds'>): number {
  return Math.max(leastCount, Math.round(rate * seconds));
}

class Client {
  readonly #ca: readonly string[];
  readonly #agents: Agent[] = [];
  readonly #port: number;
  readonly #areJudged: boolean;
  readonly #known = new WeakSet<object>();
  connections = 0;
  readonly certificates = new Set<string>();

  constructor({ port, ca, areJudged }: Pick<LoadOptions, 'port' | 'ca' | 'areJudged'>) {
    this.#port = port;
    this.#areJudged = areJudged;
    this.#ca = ca;
    this.renew();
  }

  /** Opens new connections for later requests. Requests in progress keep the old connections. */
  renew(): void {
    // API servers do not resume sessions.
    this.#agents.unshift(new Agent({ keepAlive: true, maxSockets: connectionLimit, maxCachedSessions: 0, ca: [...this.#ca] }));
  }

  /** Returns the problem with the answer, or why it is missing. Never rejects and never retries. */
  ask({ path, before, after, isAllowed }: AskedReview, uid: string): Promise<string | undefined> {
    const id = Buffer.from(uid);
    const headers = { 'Content-Type': 'application/json', 'Content-Length': before.length + id.length + after.length };
    return new Promise((resolve) => {
      const options = {
        host: '127.0.0.1',
        servername: 'localhost',
        port: this.#port,
        path,
        method: 'POST',
        agent: this.#agents[0],
        headers,
      };
      const sent = request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', ({ message }) => end(`the answer to ${path} broke off: ${message}`));
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isRight = response.statusCode === 200 && (!this.#areJudged || isVerdict(text, { uid, isAllowed }));
          end(isRight ? undefined : `${path} was answered with ${response.statusCode}: ${text.slice(0, 500)}`);
        });
      });
      const limit = setTimeout(() => sent.destroy(new Error(`no answer within ${longestMs / 1000} s`)), longestMs);
      const end = (problem: string | undefined): void => {
        clearTimeout(limit);
        resolve(problem);
      };
      sent.once('socket', (socket) => {
        // `reusedSocket` is not set for a request that waited for a socket.
        if (this.#known.has(socket)) return;
        this.#known.add(socket);
        socket.once('secureConnect', () => {
          this.connections += 1;
          if (socket instanceof TLSSocket) this.certificates.add(socket.getPeerCertificate().fingerprint256);
        });
      });
      sent.on('error', ({ message }) => end(`${path} got no answer: ${message}`));
      for (const part of [before, id]) sent.write(part);
      sent.end(after);
    });
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy();
  }
}

function isVerdict(text: string, { uid, isAllowed }: { readonly uid: string; readonly isAllowed: boolean }): boolean {
  try {
    const { response }: { readonly response?: { readonly uid?: unknown; readonly allowed?: unknown } } = JSON.parse(text);
    return response?.uid === uid && response.allowed === isAllowed;
  } catch {
    return false;
  }
}
