// Turns errors of requests to the API server into failures with exit code, reason and next step.
import { ConnectionFailure } from '../cluster/connection/connection.ts';
import { ApiFailure, TransportFailure } from '../cluster/request/failure.ts';
import { type ExitCode, exitCodes, Failure, type FailureDetails, type UncalledWebhook } from './failure.ts';

/** Returns a Failure for an error of a connection or request. Returns every other error unchanged: a Failure or a defect. */
export function connectionFailure(error: unknown, server: string): unknown {
  const cause = error instanceof TransportFailure ? error.cause : error;
  if (cause instanceof ConnectionFailure) return new Failure({ ...problems[cause.kind], why: cause.message });
  if (error instanceof TransportFailure) {
    return new Failure({
      exitCode: exitCodes.unreachable,
      what: `${server} gave no answer`,
      why: `${error.message}${error.mayBeApplied && isWrite(error.site) ? '; the change may have been applied' : ''}`,
      todo: 'check the address of the context, the network and the proxy settings: kubectl version',
    });
  }
  return error instanceof ApiFailure ? new Failure(answerDetails(error, server)) : error;
}

const problems: Readonly<Record<ConnectionFailure['kind'], FailureDetails>> = {
  configuration: {
    exitCode: exitCodes.unreachable,
    what: 'no connection to a cluster can be made',
    todo: 'name a cluster with --kubeconfig and --context, or list the contexts: kubectl config get-contexts',
  },
  unauthenticated: {
    exitCode: exitCodes.notAllowed,
    what: 'no credentials for the cluster',
    todo: 'log in again, or choose another --context or --user',
  },
  unreachable: {
    exitCode: exitCodes.unreachable,
    what: 'the cluster cannot be reached',
    todo: 'check the address, the network and the proxy settings: kubectl version',
  },
};

/** Reports whether a request site (`part.verb`) writes. */
function isWrite(site: string): boolean {
  return /\.(?:apply|create|patch|delete|replace|scale|restart)/.test(site);
}

/** Reports whether a webhook, an admission policy, a quota or a limit range denied the request; false for a missing permission. */
export function isAdmission({ message }: Pick<ApiFailure, 'message'>): boolean {
  return (
    /admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '[^']*' .*denied request/.test(message) ||
    /is forbidden: (?:(?:exceeded|failed|insufficient|status unknown for) quota|(?:minimum|maximum) )/.test(message)
  );
}

/** The maximum number of characters of a cause in a message. Some causes quote a whole page of a proxy. */
const longestCause = 120;

/** Returns the webhook that the API server could not call, from the message of the API server; undefined for every other message. */
export function uncalledWebhook(message: string): UncalledWebhook | undefined {
  const [, name, rest = ''] = /failed calling webhook "([^"]+)":?\s*(.*)/s.exec(message) ?? [];
  if (name === undefined) return undefined;
  const host = /https?:\/\/([^/"?]+)/.exec(rest)?.[1];
  const [, service, namespace] = /^([\w-]+)\.([\w-]+)\.svc\b/.exec(host ?? '') ?? [];
  // Only the last part is the cause. The parts before it contain addresses.
  const cause = (rest.split('\n')[0] ?? '').split(': ').at(-1) ?? '';
  return {
    name,
    place: service === undefined ? host : `Service ${namespace}/${service}`,
    namespace,
    why: cause.trim().slice(0, longestCause),
  };
}

/** Returns one line: `webhook stamp.rollout-group.dev of Service ops/agent did not answer: connection refused`. */
export function uncalledText({ name, place, why }: UncalledWebhook): string {
  return `webhook ${name}${place === undefined ? '' : ` of ${place}`} did not answer: ${why}`;
}

/** Returns the webhook that the API server could not call; undefined for every other error. */
export function uncalledBy(error: unknown): UncalledWebhook | undefined {
  return error instanceof ApiFailure ? uncalledWebhook(error.message) : undefined;
}

/**
 * Returns the message without `RESOURCE "NAME" is forbidden: `, so that objects with one cause have one message. If a webhook did not
 * answer, returns one line about the webhook.
 */
export function shortMessage(message: string): string {
  const webhook = uncalledWebhook(message);
  return webhook === undefined ? message.replace(/^[\w.]+ "[^"]*" is (?:forbidden|invalid): /, '') : uncalledText(webhook);
}

export function isOwnWebhook({ name }: UncalledWebhook): boolean {
  return name.endsWith('.rollout-group.dev');
}

/** Returns the failure for a webhook that did not answer, with the command that shows the cause. */
function uncalledDetails(webhook: UncalledWebhook): FailureDetails {
  const { namespace } = webhook;
  const pods = `kubectl get pods ${namespace === undefined ? '-A' : `-n ${namespace}`}`;
  const todo = `find out why it does not answer: ${isOwnWebhook(webhook) ? 'kubectl rollout-group doctor' : pods}`;
  return { exitCode: exitCodes.unreachable, what: uncalledText(webhook), todo, webhook };
}

function answerDetails(error: ApiFailure, server: string): FailureDetails {
  const { status, message } = error;
  const webhook = uncalledWebhook(message);
  if (webhook !== undefined) return uncalledDetails(webhook);
  if (status === 401) {
    return {
      exitCode: exitCodes.notAllowed,
      what: `${server} does not know who you are`,
      why: message,
      todo: 'log in again, or choose another --context or --user; kubectl auth whoami shows the current user',
    };
  }
  if (status === 403 && !isAdmission(error)) return forbiddenDetails(error);
  const [exitCode, todo] = meaning(error);
  return { exitCode, what: `the API server answered ${status}${error.reason === '' ? '' : ` ${error.reason}`}`, why: message, todo };
}

function meaning(error: ApiFailure): readonly [ExitCode, string] {
  if (isAdmission(error)) return [exitCodes.refused, 'change the request, or the policy that denies it'];
  if (error.status === 404) return [exitCodes.notFound, 'list all groups: kubectl rollout-group get -A'];
  if (error.status === 409) return [exitCodes.stale, 'the object changed meanwhile: check it and try again'];
  if (error.status >= 500 || error.status === 429) return [exitCodes.unreachable, 'try again in a moment'];
  return [exitCodes.usage, 'change the request'];
}

export function forbiddenFailure(message: string): Failure {
  return new Failure(forbiddenDetails({ message }));
}

const denial = /User "([^"]*)" cannot (\S+) (?:resource|path) "([^"]+)"(?: in API group "([^"]*)")?(?:.* in the namespace "([^"]*)")?/;

function forbiddenDetails({ message }: Pick<ApiFailure, 'message'>): FailureDetails {
  const match = denial.exec(message);
  if (match === null) {
    return { exitCode: exitCodes.notAllowed, what: 'the API server denies the request', why: message, todo: 'kubectl auth can-i --list' };
  }
  const [, user = '', verb = '', resource = '', group = '', namespace] = match;
  const where = namespace === undefined ? 'in the whole cluster' : `in namespace ${namespace}`;
  const role = namespace === undefined ? 'a ClusterRole' : `a Role of namespace ${namespace}`;
  return {
    exitCode: exitCodes.notAllowed,
    what: `${user} may not ${verb} ${resource} ${where}`,
    why: message,
    todo: `let an administrator bind ${role} with the rule {apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["${verb}"]}`,
  };
}
