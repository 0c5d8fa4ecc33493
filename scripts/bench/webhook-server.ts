// Runs the webhook under load, or a bare Node HTTPS server for comparison, and measures durations and memory.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { keepMemorySmall } from '../../agent/process/own-process.ts';
import { issuePair } from '../../webhook/certificates/authority.ts';
import type { TlsMaterial, TlsSource } from '../../webhook/certificates/source.ts';
import { defaultConfig, defaultLimits } from '../../webhook/config.ts';
import type { ServedEndpoint } from '../../webhook/server/exchange.ts';
import { startWebhook } from '../../webhook/webhook.ts';
import { lookAtMemory, type MemorySample } from './webhook-memory.ts';
import { bigPrefix, type Scenario, warmPrefix } from './webhook-reviews.ts';
import { startLoadWorld } from './webhook-world.ts';

export interface ServerOptions {
  readonly kind: 'webhook' | 'bare';
  readonly scenario: Scenario;
  /** Number of requests in the load, and so of stored durations. */
  readonly count: number;
}

export interface ServerReport {
  /** Milliseconds in the endpoints without the API server, for reviews of 20 KiB. Empty for a bare server. */
  readonly handlerMs: readonly number[];
  /** The same for reviews of 3 MiB. */
  readonly bigHandlerMs: readonly number[];
  /** Samples in the second half of the load. */
  readonly samples: readonly MemorySample[];
  readonly ledgerWrites: number;
}

interface LoadServer {
  readonly port: number;
  /** The authorities of both certificates (PEM). */
  readonly ca: readonly string[];
  /** From now on new connections get the second certificate. */
  readonly rotate: () => void;
  /** Measures the memory. No request is open. */
  readonly look: () => Promise<void>;
  /** Stops the server and returns the measurements. */
  readonly finish: () => Promise<ServerReport>;
}

const address = '127.0.0.1';

/** Resolves when the server listens on a free loopback port. */
export async function startLoadServer(options: ServerOptions): Promise<LoadServer> {
  keepMemorySmall();
  const [first, second] = [newMaterial(), newMaterial()];
  const tls = twoCertificates(first, second);
  const server = options.kind === 'bare' ? await startBare(tls) : await startReal(tls, options);
  const samples: MemorySample[] = [];
  return {
    port: server.port,
    ca: [first, second].map(({ ca = '' }) => ca),
    rotate: tls.rotate,
    look: async () => void samples.push(await lookAtMemory()),
    finish: async () => {
      await server.stop();
      return { samples, ...server.measured() };
    },
  };
}

interface Running {
  readonly port: number;
  readonly measured: () => Omit<ServerReport, 'samples'>;
  readonly stop: () => Promise<void>;
}

async function startReal(tls: TlsSource, { scenario, count }: ServerOptions): Promise<Running> {
  const world = await startLoadWorld(scenario);
  // Has a fixed size from the start, so that only the memory of the webhook grows.
  const durations = { small: new Durations(count), big: new Durations(count) };
  const timed = (endpoint: ServedEndpoint): ServedEndpoint => ({
    ...endpoint,
    handle: async (review, call) => {
      const [startedMs, apiMs] = [performance.now(), world.apiMs()];
      try {
        return await endpoint.handle(review, call);
      } finally {
        const ownMs = performance.now() - startedMs - (world.apiMs() - apiMs);
        if (!review.uid.startsWith(warmPrefix)) durations[review.uid.startsWith(bigPrefix) ? 'big' : 'small'].add(ownMs);
      }
    },
  });
  const nothing = (): void => undefined;
  const webhook = await startWebhook({
    config: { ...defaultConfig, port: 0, address, drainMs: 0, limits: defaultLimits },
    endpoints: world.endpoints.map(timed),
    tls,
    observer: {
      inflight: nothing,
      answered: nothing,
      decided: nothing,
      wrongCluster: nothing,
      refusedConnection: nothing,
    },
    env: world.env,
  });
  return {
    port: webhook.port,
    measured: () => ({
      handlerMs: durations.small.values(),
      bigHandlerMs: durations.big.values(),
      ledgerWrites: world.ledgerWrites(),
    }),
    stop: async () => {
      await webhook.close();
      world.stop();
    },
  };
}

/** Reads the body and answers: the least work that a Node.js server can do. */
async function startBare(tls: TlsSource): Promise<Running> {
  const review = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', response: { uid: 'bare', allowed: true } };
  const text = Buffer.from(JSON.stringify(review));
  const { cert = '', key = '' } = tls.current() ?? {};
  const server = createServer({ cert, key, keepAliveTimeout: defaultLimits.keepAliveMs }, (request, response) => {
    request.resume();
    request.once('end', () => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': text.length });
      response.end(text);
    });
  });
  server.maxRequestsPerSocket = defaultLimits.maxRequestsPerConnection;
  const forget = tls.onChange(() => server.setSecureContext({ ...tls.current() }));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, resolve);
  });
  // A server that listens on a port has an address.
  const { port } = server.address() as AddressInfo;
  return {
    port,
    measured: () => ({ handlerMs: [], bigHandlerMs: [], ledgerWrites: 0 }),
    stop: () =>
      new Promise((resolve) => {
        forget();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

class Durations {
  readonly #values: Float64Array;
  #count = 0;

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity);
  }

  /** Durations beyond the capacity are dropped. */
  add(value: number): void {
    this.#values[this.#count] = value;
    this.#count = Math.min(this.#count + 1, this.#values.length);
  }

  values(): readonly number[] {
    return Array.from(this.#values.subarray(0, this.#count));
  }
}

function newMaterial(): TlsMaterial {
  const lifetimeMs = 24 * 3_600_000;
  return issuePair({ names: ['localhost'], organization: 'bench', nowMs: Date.now(), lifetimeMs, randomBytes });
}

function twoCertificates(first: TlsMaterial, second: TlsMaterial): TlsSource & { readonly rotate: () => void } {
  let current = first;
  const listeners = new Set<() => void>();
  return {
    current: () => current,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    rotate: () => {
      current = second;
      for (const listener of listeners) listener();
    },
  };
}
