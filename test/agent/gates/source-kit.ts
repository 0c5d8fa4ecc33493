// Metric sources in a test: the objects and Secrets of the agent's namespace, servers on this machine, and the port between them.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { GateHttp, LogFields, ServiceQuery } from '../../../agent/env.ts';
import { SourceHttp } from '../../../agent/gates/source-http.ts';
import { createExchanges, type Exchanges } from '../../../cluster/connection/http-exchange.ts';
import { metricSourceOf } from '../../../policies/integrations/metric-source.ts';
import { apiVersion, schemas } from '../../../policies/schema/kinds.ts';
import type { Certificate } from '../../control-plane/certificates.ts';
import { ObjectsServer } from '../../kit/objects-server.ts';
import { status, virtualEnv } from '../../kit/virtual-env.ts';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Closed together at the end of a test. */
interface Loopback {
  /** `host:port` of a server on a free port of this machine. */
  readonly serve: (handler: Handler, certificate?: Certificate) => Promise<string>;
  readonly exchanges: () => Exchanges;
  readonly close: () => Promise<void>;
}

export function loopback(): Loopback {
  const servers: Server[] = [];
  const opened: Exchanges[] = [];
  return {
    serve: async (handler, certificate) => {
      const server: Server =
        certificate === undefined
          ? createServer(handler)
          : createTlsServer({ cert: certificate.certificate, key: certificate.privateKey }, handler);
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return `127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    exchanges: () => {
      const exchanges = createExchanges({ env: {}, maxSockets: 8 });
      opened.push(exchanges);
      return exchanges;
    },
    close: async () => {
      for (const exchanges of opened.splice(0)) exchanges.close();
      for (const server of servers.splice(0)) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

/** `spec` of a MetricSource; what is left out has its default. */
export type SourceSpec = Readonly<Record<string, unknown>>;

function sourceObject(name: string, spec: SourceSpec) {
  return {
    apiVersion,
    kind: 'MetricSource',
    metadata: { name, namespace: 'operator' },
    spec: { usableFrom: { namespaces: ['mimir'] }, ...spec },
  };
}

/** As a policy file defines it. */
export function writtenSource(name: string, spec: SourceSpec) {
  return metricSourceOf(schemas.MetricSource.parse(sourceObject(name, spec)));
}

export interface SourcesGiven {
  /** Objects of the agent's namespace, by name. */
  readonly sources?: Readonly<Record<string, SourceSpec>>;
  /** Keys of Secrets of the agent's namespace. */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Instead of what is there: the HTTP status with which the API server answers to a path. */
  readonly answers?: (path: string) => number | undefined;
  readonly policySources?: readonly ('directory' | 'objects' | 'adopted')[];
  readonly exchanges: Exchanges;
}

/** The port to these sources, what it has asked the API server, and what it has logged. */
export function portTo(given: SourcesGiven) {
  const logs: string[] = [];
  const log = (message: string, fields: LogFields = {}) => void logs.push(`${message} ${JSON.stringify(fields)}`);
  const env = virtualEnv();
  const server = new ObjectsServer(env, ['metricsources', 'secrets']);
  for (const [name, spec] of Object.entries(given.sources ?? {})) server.put('metricsources.rollout-group.dev', sourceObject(name, spec));
  const putSecret = (name: string, texts: Readonly<Record<string, string>>): void => {
    const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
    server.put('secrets', { metadata: { name, namespace: 'operator' }, data });
  };
  for (const [name, texts] of Object.entries(given.secrets ?? {})) putSecret(name, texts);
  server.fault = ({ path }) => {
    const code = given.answers?.(path);
    return code === undefined ? undefined : status(code, 'Failure');
  };
  const port: GateHttp = new SourceHttp({
    agentNamespace: 'operator',
    policySources: given.policySources ?? ['directory', 'objects'],
    userAgent: 'rollout-group-agent/1',
    kubernetes: env.kubernetes,
    clock: { monotonicMs: () => performance.now() },
    log: { debug: log, info: log, warn: log, error: log },
    exchange: given.exchanges.exchange,
  });
  const asked = (): readonly string[] => env.requests.map(({ method, path }) => `${method} ${path}`);
  return { port, asked, logs, putSecret };
}

/** A question of a group in mimir. */
export const question: Omit<ServiceQuery, 'service'> = {
  namespace: 'mimir',
  source: 'prod',
  everyMs: 60_000,
  timeoutMs: 5_000,
  site: 'gate.read',
};

/** The whole text of a request's body. */
export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
