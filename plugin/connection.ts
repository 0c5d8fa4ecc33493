// Connects a verb to the API server that the connection flags name. Loads the Kubernetes client only when a verb needs it.

import type { ClusterEnv, KubernetesHttp } from '../cluster/env.ts';
import type { ConnectionOptions, ConnectionProcess } from '../cluster/kubeconfig/kubeconfig.ts';
import { defined } from '../policies/values/defined.ts';
import type { CommandContext } from './context.ts';
import { Failure } from './failure.ts';
import { version } from './version.ts';

/** The values of the connection flags, with the names that the command line uses. */
export interface ConnectionFlags extends Omit<ConnectionOptions, 'source' | 'asGroups'> {
  readonly asGroup?: readonly string[];
  /** Present only for verbs with this flag. */
  readonly agentNamespace?: string;
}

/** An API server with the credentials of the user. */
export interface Cluster {
  readonly env: ClusterEnv;
  /** The namespace of the flag, else of the context, else `default`. */
  readonly namespace: string;
  readonly agentNamespace?: string;
  readonly server: string;
  /** Empty if no context was chosen. */
  readonly contextName: string;
  readonly timeoutMs: number;
  /** Closes the connections. Idle connections would keep the process alive. */
  readonly close: () => void;
}

/** The requests that a verb may send. `read` rejects writes before they are sent. */
export type Access = 'read' | 'write';

const standardTimeoutMs = 30_000;

/**
 * The field manager of every write of the plugin. The API server takes the manager of a patch from the user agent. The name must not begin
 * with `kubectl`: Flux takes over the fields of such managers, and removes fields that Git does not name.
 */
export const fieldManager = 'rollout-group';

export interface ConnectionContext extends Pick<CommandContext, 'env' | 'verbosity' | 'cluster'> {
  readonly stderr: Pick<CommandContext['stderr'], 'write'>;
  /** The access of credential plugins to the terminal; if absent, the same access as in kubectl. */
  readonly terminal?: Pick<ConnectionProcess, 'isTerminal' | 'pluginStderr'>;
}

/** Prepares the connection of the flags, or of the report that replaces it. Sends no request yet. */
export async function connect(context: ConnectionContext, flags: ConnectionFlags, access: Access): Promise<Cluster> {
  if (context.cluster !== undefined) {
    const { namespace, agentNamespace } = flags;
    return { ...context.cluster, ...defined({ namespace, agentNamespace }) };
  }
  const [{ loadConnection }, { KubernetesTransport }, { connectionProcess, processEnv }, { readOnly }, { connectionFailure }] =
    await Promise.all([
      import('../cluster/kubeconfig/kubeconfig.ts'),
      import('../cluster/connection/transport.ts'),
      import('../cluster/connection/process-env.ts'),
      import('../cluster/request/read-only.ts'),
      import('./connection-failure.ts'),
    ]);
  const { asGroup = [] } = flags;
  const options = { ...flags, asGroups: asGroup };
  const connection = await loadConnection(options, { ...connectionProcess(), ...context.terminal, env: context.env }).catch(
    (error: unknown) => {
      throw connectionFailure(error, flags.server ?? 'the cluster');
    },
  );
  const { stderr, verbosity } = context;
  const http = new KubernetesTransport(connection, {
    userAgent: `${fieldManager}/${version}`,
    isCompressed: true,
    ...(verbosity < 6
      ? {}
      : { onAnswer: ({ method, path, status, durationMs }) => stderr.write(`${method} ${path} ${status} ${Math.round(durationMs)}ms\n`) }),
  });
  const limitedHttp: KubernetesHttp = access === 'write' ? http : readOnly(http);
  return {
    env: processEnv(limitedHttp),
    namespace: connection.namespace,
    ...(flags.agentNamespace === undefined ? {} : { agentNamespace: flags.agentNamespace }),
    server: connection.server,
    contextName: connection.contextName ?? '',
    timeoutMs: connection.requestTimeoutMs ?? standardTimeoutMs,
    close: http.close,
  };
}

/** Connects to the cluster, calls `run` and closes the connection. Errors of the API server become a Failure with an exit code. */
export async function withCluster<Result>(
  context: CommandContext,
  flags: ConnectionFlags,
  access: Access,
  run: (cluster: Cluster) => Promise<Result>,
): Promise<Result> {
  const cluster = await connect(context, flags, access);
  try {
    return await run(cluster);
  } catch (error) {
    const failure = (await import('./connection-failure.ts')).connectionFailure(error, cluster.server);
    throw failure instanceof Failure ? await withAgentCause(cluster, failure) : failure;
  } finally {
    cluster.close();
  }
}

/** Returns the failure with the state of the agent, if a webhook did not answer because its agent does not run. */
async function withAgentCause(cluster: Cluster, failure: Failure): Promise<Failure> {
  const { webhook } = failure.details;
  if (webhook === undefined) return failure;
  const agent = await (await import('./live/agent.ts')).stoppedAgentOf(cluster, webhook);
  if (agent === undefined) return failure;
  const why = [agent, failure.details.why].filter((part) => part !== undefined).join('; ');
  return new Failure({ ...failure.details, why, todo: 'start the agent, then repeat the command' });
}
