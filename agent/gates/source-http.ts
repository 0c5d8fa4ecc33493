// Queries metric sources over HTTP: finds the MetricSource, reads its credentials, and calls the API of Prometheus or Consul.

import { codeOf, isDistrust } from '../../cluster/connection/exchange.ts';
import type { Clock, ClusterEnv } from '../../cluster/env.ts';
import { ApiFailure, isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type SecretKey, type SecretText, secretProblemText, secretReader } from '../../cluster/request/secret.ts';
import { formatDuration } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type MetricSourceDefinition, metricSourceOf } from '../../policies/integrations/metric-source.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import { resourceOfKind } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { GateAnswer, GateHttp, GateQuery, HttpRequest, Log, ServiceQuery, SourceQuery } from '../env.ts';

interface SourceHttpOptions extends SourceParts {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
  readonly userAgent: string;
  /** Rejects with an Error that says why no complete answer arrived. The message of an Error with a `cause` may contain an address. */
  readonly exchange: (request: HttpRequest) => Promise<GateAnswer>;
}

/** The most sources whose last problem is remembered, so that each problem is logged once. */
const maxProblems = 1000;

/**
 * Queries metric sources. Each query reads the definition and the credentials of its source again, so a revoked credential has an effect
 * at once and no credential is kept. The log of the agent contains the full cause of a failure. Errors appear in the status of groups, so
 * they contain neither an address nor a Secret.
 */
export class SourceHttp implements GateHttp {
  readonly #options: SourceHttpOptions;
  readonly #problems = new Map<string, string>();

  constructor(options: SourceHttpOptions) {
    this.#options = options;
  }

  query(question: GateQuery): Promise<GateAnswer> {
    return this.#query(question, async (target) => {
      const { prometheus } = target.source;
      if (prometheus === undefined) throw new Error(`the metric source ${target.source.name} is not a Prometheus`);
      const { url, bearerToken, basicAuth, ca } = prometheus;
      const authorization = bearerToken
        ? `Bearer ${headerToken(await target.secrets(bearerToken))}`
        : basicAuth && basicAuthorization(await target.secrets(basicAuth.username), await target.secrets(basicAuth.password));
      return await this.#exchange(target, {
        method: 'POST',
        url: apiUrl(url, '/api/v1/query'),
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          ...(authorization === undefined ? {} : { Authorization: authorization }),
        },
        // With this timeout, Prometheus stops the query when the agent stops waiting.
        body: new URLSearchParams({ query: question.query, timeout: `${target.leftMs()}ms` }).toString(),
        ...(ca === undefined ? {} : { ca: await target.secrets(ca) }),
      });
    });
  }

  health(question: ServiceQuery): Promise<GateAnswer> {
    return this.#query(question, async (target) => {
      const { consul } = target.source;
      if (consul === undefined) throw new Error(`the metric source ${target.source.name} is not a Consul`);
      const { url, token, ca } = consul;
      const { service, datacenter } = question;
      const query = datacenter === undefined ? '' : `?${new URLSearchParams({ dc: datacenter })}`;
      return await this.#exchange(target, {
        method: 'GET',
        url: apiUrl(url, `/v1/health/service/${encodeURIComponent(service)}${query}`),
        headers: token === undefined ? {} : { 'X-Consul-Token': headerToken(await target.secrets(token)) },
        ...(ca === undefined ? {} : { ca: await target.secrets(ca) }),
      });
    });
  }

  #logChange(source: string, problem: string | undefined, detail = problem): void {
    if (this.#problems.get(source) === problem) return;
    if (problem === undefined) {
      this.#problems.delete(source);
      this.#options.log.info('metric source answers again', { source });
      return;
    }
    // Groups may name sources that do not exist, so the names are unbounded.
    if (this.#problems.size >= maxProblems) this.#problems.clear();
    this.#problems.set(source, problem);
    this.#options.log.warn('metric source cannot be queried', { source, problem, detail });
  }

  async #query(question: SourceQuery, send: (target: QueryTarget) => Promise<GateAnswer>): Promise<GateAnswer> {
    const startedMs = this.#options.clock.monotonicMs();
    try {
      const source = await findSource(this.#options, question);
      const timeoutMs = Math.min(question.timeoutMs, source.timeoutMs);
      const leftMs = (): number => {
        const left = Math.floor(timeoutMs - (this.#options.clock.monotonicMs() - startedMs));
        if (left <= 0) throw new Error(`no answer within ${formatDuration(timeoutMs)}`);
        return left;
      };
      const secrets = credentialReader(this.#options, { namespace: this.#options.agentNamespace, leftMs });
      const answer = await send({ source, secrets, leftMs });
      if (answer.status >= 300 && answer.status <= 399)
        throw new Error(`the provider redirects (HTTP ${answer.status}), which the agent does not follow`);
      this.#logChange(question.source, undefined);
      return answer;
    } catch (error) {
      const problem = publicProblem(error);
      this.#logChange(question.source, problem, messageOf(error));
      throw new Error(problem);
    }
  }

  async #exchange({ source, leftMs }: QueryTarget, request: Omit<HttpRequest, 'timeoutMs' | 'maxBodyBytes'>): Promise<GateAnswer> {
    const headers = { 'User-Agent': this.#options.userAgent, Accept: 'application/json', ...request.headers };
    return await this.#options.exchange({ ...request, headers, timeoutMs: leftMs(), maxBodyBytes: source.maxResponseBytes });
  }
}

interface QueryTarget {
  readonly source: MetricSourceDefinition;
  readonly secrets: CredentialReader;
  /** Returns the milliseconds until the deadline of the query. Throws after the deadline. */
  readonly leftMs: () => number;
}

function apiUrl(url: string, path: string): string {
  return `${url.replace(/\/+$/, '')}${path}`;
}

/** Returns the cause of an error without addresses and credentials. */
function publicProblem(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  if (error.cause === undefined) return error.message;
  if (isDistrust(error.cause)) return 'the certificate of the provider is not trusted';
  const code = codeOf(error.cause);
  return problemsByCode[code] ?? `no answer${/^[A-Z][A-Z0-9_]{2,40}$/.test(code) ? ` (${code})` : ''}`;
}

const problemsByCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the provider refuses connections',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was reset',
  ENOTFOUND: 'the host of the provider is unknown',
  EAI_AGAIN: 'the host of the provider cannot be resolved now',
  EHOSTUNREACH: 'there is no route to the provider',
  ENETUNREACH: 'there is no route to the provider',
  ETIMEDOUT: 'the provider does not answer',
  EPROTO: 'the provider does not speak TLS',
};

interface SourceParts extends Pick<AgentConfig, 'agentNamespace' | 'policySources'> {
  readonly kubernetes: ClusterEnv['kubernetes'];
}

const metricSources = resourceOfKind('MetricSource');

/** Finds the source if the namespace may query it at this interval. Rejects with an Error for the status of the group. */
async function findSource(parts: SourceParts, question: SourceQuery): Promise<MetricSourceDefinition> {
  const { source: name, namespace, everyMs } = question;
  const source = await definedSource(parts, question);
  if (source === undefined) throw new Error(`there is no metric source ${name}`);
  // Lint rejects a file with both a token and a password, and the API server rejects such an object. A file can be used without lint.
  if (source.prometheus?.bearerToken && source.prometheus.basicAuth)
    throw new Error(`the metric source ${name} has both a token and a password`);
  if (!source.namespaces.includes(namespace)) throw new Error(`the metric source ${name} is not available to namespace ${namespace}`);
  if (everyMs < source.minIntervalMs) {
    const allowed = formatDuration(source.minIntervalMs);
    throw new Error(`the metric source ${name} allows a query every ${allowed}, not every ${formatDuration(everyMs)}`);
  }
  return source;
}

async function definedSource(
  parts: SourceParts,
  { source: name, written, timeoutMs }: SourceQuery,
): Promise<MetricSourceDefinition | undefined> {
  for (const place of parts.policySources) {
    if (place === 'directory' && written !== undefined) return written;
    const found = place === 'objects' ? await objectOf(parts, name, timeoutMs) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

async function objectOf(
  { kubernetes, agentNamespace }: SourceParts,
  name: string,
  timeoutMs: number,
): Promise<MetricSourceDefinition | undefined> {
  const target = { namespace: agentNamespace, name };
  const options = { site: 'gate.source', timeoutMs };
  const object = await getObject({ kubernetes }, metricSources, target, options).catch((error: unknown) => {
    // Status 404: the CRD of MetricSource is not installed, so the object does not exist.
    if (isStatus(error, 404)) return undefined;
    throw new Error(`the metric source ${name} cannot be read${error instanceof ApiFailure ? ` (HTTP ${error.status})` : ''}`);
  });
  if (object === undefined) return undefined;
  // An object that does not match the schema is not used at all.
  const [document] = loadObjects([object]).documents;
  if (document?.kind !== 'MetricSource') throw new Error(`the metric source ${name} is not valid; run lint for the reason`);
  return metricSourceOf(document.value);
}

/** Returns the text of a key. Rejects with an Error for the status of the group, so the Error names neither the Secret nor its content. */
type CredentialReader = (key: SecretKey) => Promise<string>;

/** Returns a reader for one query. It reads each Secret once, even for several keys. */
function credentialReader(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { namespace, leftMs }: { readonly namespace: string; readonly leftMs: () => number },
): CredentialReader {
  const read = secretReader(env, { namespace, site: 'gate.secret', timeoutMs: leftMs });
  return async (key) => {
    let found: SecretText;
    try {
      found = await read(key);
    } catch (error) {
      const why = error instanceof ApiFailure ? ` (HTTP ${error.status})` : '';
      throw new Error(`the Secret of the metric source cannot be read${why}`);
    }
    if ('problem' in found) throw new Error(secretProblemText(found.problem, 'the metric source'));
    // Secrets made from files often end with a line break.
    return found.text.replace(/\r?\n$/, '');
  };
}

/** Characters of a header value (RFC 9110, 5.5) without leading and trailing spaces. */
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Returns a token for a header. Throws if it has invalid characters. */
function headerToken(token: string): string {
  if (!headerValue.test(token))
    throw new Error('the token in the Secret of the metric source has characters that are not allowed in a header');
  return token;
}

/** Returns an `Authorization` value with a user and a password (RFC 7617), in UTF-8. */
function basicAuthorization(username: string, password: string): string {
  if (username.includes(':')) throw new Error('the user name in the Secret of the metric source has a colon');
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
