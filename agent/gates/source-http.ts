// Queries metric sources over HTTP: finds the MetricSource, reads its credentials, and calls the API of Prometheus or Consul.

import type { Clock, ClusterEnv } from '../../cluster/env.ts';
import { ApiFailure } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { type SecretKey, type SecretText, secretProblemText, secretReader } from '../../cluster/request/secret.ts';
import { formatDuration } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type MetricSourceDefinition, metricSourceOf } from '../../policies/integrations/metric-source.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import { apiGroup, apiVersion } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { GateAnswer, GateHttp, GateQuery, GateQuestion, HttpRequest, Log, ServiceQuery } from '../env.ts';

interface SourceHttpOptions extends SourceParts {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
  readonly userAgent: string;
  /** Rejects with an Error that says why no whole answer came. An Error with a `cause` repeats the system's message, which may name an address. */
  readonly exchange: (request: HttpRequest) => Promise<GateAnswer>;
}

/** Sources of which it is remembered what is wrong with them, so that it is logged once. */
const maxProblems = 1000;

/**
 * The port to metric sources. Each query reads the address and the credentials of its source from the agent's namespace: a revoked credential
 * counts at once, and no credential is kept. The agent's log says why a source does not answer; a group never sees an address or a Secret.
 */
export class SourceHttp implements GateHttp {
  readonly #options: SourceHttpOptions;
  readonly #problems = new Map<string, string>();

  constructor(options: SourceHttpOptions) {
    this.#options = options;
  }

  query(question: GateQuery): Promise<GateAnswer> {
    return this.#asked(question, async (at) => {
      const { prometheus } = at.source;
      if (prometheus === undefined) throw new Error(`the metric source ${at.source.name} is not a Prometheus`);
      const { url, bearerToken, basicAuth, ca } = prometheus;
      const authorization = bearerToken
        ? bearerOf(await at.secrets(bearerToken))
        : basicAuth && passwordOf(await at.secrets(basicAuth.username), await at.secrets(basicAuth.password));
      return await this.#exchange(at, {
        method: 'POST',
        url: below(url, '/api/v1/query'),
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          ...(authorization === undefined ? {} : { Authorization: authorization }),
        },
        // Prometheus stops the query when its client is gone.
        body: new URLSearchParams({ query: question.query, timeout: `${at.leftMs()}ms` }).toString(),
        ...(ca === undefined ? {} : { ca: await at.secrets(ca) }),
      });
    });
  }

  health(question: ServiceQuery): Promise<GateAnswer> {
    return this.#asked(question, async (at) => {
      const { consul } = at.source;
      if (consul === undefined) throw new Error(`the metric source ${at.source.name} is not a Consul`);
      const { url, token, ca } = consul;
      const { service, datacenter } = question;
      const query = datacenter === undefined ? '' : `?${new URLSearchParams({ dc: datacenter })}`;
      return await this.#exchange(at, {
        method: 'GET',
        url: below(url, `/v1/health/service/${encodeURIComponent(service)}${query}`),
        headers: token === undefined ? {} : { 'X-Consul-Token': keyOf(await at.secrets(token)) },
        ...(ca === undefined ? {} : { ca: await at.secrets(ca) }),
      });
    });
  }

  #noted(source: string, problem: string | undefined, detail = problem): void {
    if (this.#problems.get(source) === problem) return;
    if (problem === undefined) {
      this.#problems.delete(source);
      this.#options.log.info('metric source answers again', { source });
      return;
    }
    // Anybody may name sources that do not exist.
    if (this.#problems.size >= maxProblems) this.#problems.clear();
    this.#problems.set(source, problem);
    this.#options.log.warn('metric source cannot be queried', { source, problem, detail });
  }

  async #asked(question: GateQuestion, send: (at: At) => Promise<GateAnswer>): Promise<GateAnswer> {
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
      const maxBodyBytes = Math.min(question.maxBodyBytes, source.maxResponseBytes);
      const answer = await send({ source, secrets, leftMs, maxBodyBytes });
      if (answer.status >= 300 && answer.status <= 399)
        throw new Error(`the provider redirects (HTTP ${answer.status}), which the agent does not follow`);
      this.#noted(question.source, undefined);
      return answer;
    } catch (error) {
      const problem = spoken(error);
      this.#noted(question.source, problem, messageOf(error));
      throw new Error(problem);
    }
  }

  async #exchange({ leftMs, maxBodyBytes }: At, request: Omit<HttpRequest, 'timeoutMs' | 'maxBodyBytes'>): Promise<GateAnswer> {
    const headers = { 'User-Agent': this.#options.userAgent, Accept: 'application/json', ...request.headers };
    return await this.#options.exchange({ ...request, headers, timeoutMs: leftMs(), maxBodyBytes });
  }
}

/** The target and the limits of one query. */
interface At {
  readonly source: MetricSourceDefinition;
  readonly secrets: CredentialReader;
  /** Until the question must be over. Throws when it is. */
  readonly leftMs: () => number;
  readonly maxBodyBytes: number;
}

/** The address of an API below that of the server. */
function below(url: string, path: string): string {
  return `${url.replace(/\/+$/, '')}${path}`;
}

/** Returns the cause without addresses and credentials. */
function spoken(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  if (error.cause === undefined) return error.message;
  const { cause } = error;
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  if (
    /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|INVALID_CA|ERR_TLS_CERT_ALTNAME_INVALID)$/.test(code)
  )
    return 'the certificate of the provider is not trusted';
  return reasons[code] ?? `no answer${/^[A-Z][A-Z0-9_]{2,40}$/.test(code) ? ` (${code})` : ''}`;
}

const reasons: Readonly<Record<string, string>> = {
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

const resource: Resource = {
  group: apiGroup,
  version: apiVersion.slice(apiGroup.length + 1),
  plural: 'metricsources',
  kind: 'MetricSource',
  isNamespaced: true,
};

/** The source, when the namespace may ask it, and so often. Rejects with an Error that says why not; anybody may read it. */
async function findSource(parts: SourceParts, question: GateQuestion): Promise<MetricSourceDefinition> {
  const { source: name, namespace, everyMs } = question;
  const source = await definedSource(parts, question);
  if (source === undefined) throw new Error(`there is no metric source ${name}`);
  // Lint checks this in files, the API server in objects.
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
  { source: name, written, timeoutMs }: GateQuestion,
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
  const object = await getObject({ kubernetes }, resource, { namespace: agentNamespace, name }, { site: 'gate.source', timeoutMs }).catch(
    (error: unknown) => {
      // The kind is not installed: then it has no objects.
      if (error instanceof ApiFailure && error.status === 404) return undefined;
      throw new Error(`the metric source ${name} cannot be read${error instanceof ApiFailure ? ` (HTTP ${error.status})` : ''}`);
    },
  );
  if (object === undefined) return undefined;
  // An object of our own kind is read as any policy is: what does not match its schema is not used in part.
  const [document] = loadObjects([object]).documents;
  if (document?.kind !== 'MetricSource') throw new Error(`the metric source ${name} is not valid; run lint for the reason`);
  return metricSourceOf(document.value);
}

/** The text of a key. Rejects with an Error that anybody may read: it names neither the Secret nor what is in it. */
type CredentialReader = (key: SecretKey) => Promise<string>;

/** Reads each Secret once, however many of its keys are asked for. To be made for each question. */
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
const fieldValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Returns a token for a header. Throws if it has invalid characters. */
function keyOf(token: string): string {
  if (!fieldValue.test(token))
    throw new Error('the token in the Secret of the metric source has characters that are not allowed in a header');
  return token;
}

/** `Authorization` with a bearer token (RFC 6750). */
function bearerOf(token: string): string {
  return `Bearer ${keyOf(token)}`;
}

/** `Authorization` with a user and a password (RFC 7617), in UTF-8. */
function passwordOf(username: string, password: string): string {
  if (username.includes(':')) throw new Error('the user name in the Secret of the metric source has a colon');
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
