// Lets the webhooks review the requests of agents, which arrive as text.
import { type Admission, mostReviews, objectOfPath, type ReviewedRequest } from '../../../simulation/cluster/admitted.ts';
import { parsed, textAt } from '../../../simulation/objects.ts';
import { agentUser } from '../../../simulation/process/agent-process.ts';
import type { Json, ModelObject, ModelRequest, ModelResponse } from '../../../simulation/server/request.ts';
import type { ModelServer } from '../../../simulation/server/server.ts';

interface AgentRequestsOptions {
  readonly server: Pick<ModelServer, 'handle' | 'get'>;
  readonly admission: Pick<Admission, 'ask' | 'webhooks'>;
}

const operations = { POST: 'CREATE', PUT: 'UPDATE', PATCH: 'UPDATE', DELETE: 'DELETE' } as const;

/** Returns the port of the transport. Requests that would fail are not reviewed, because the API server answers them at once. */
export function createAgentAdmission({ server, admission: { ask, webhooks } }: AgentRequestsOptions): Admission['admit'] {
  const admit = (model: ModelRequest, decided: (denial?: ModelResponse) => void, attempt = 1): void => {
    const request = reviewedRequest(server, webhooks, model);
    if (request === undefined) {
      decided();
      return;
    }
    const { resource, namespace, name } = request;
    const versionNow = (): string | undefined => server.get(resource, namespace, name)?.metadata.resourceVersion;
    const version = versionNow();
    ask(request, (verdict) => {
      if (!verdict.isAllowed) decided(deniedAnswer(verdict.status, verdict.message));
      else if (model.method === 'PATCH' && versionNow() !== version && attempt < mostReviews) admit(model, decided, attempt + 1);
      else decided();
    });
  };
  return admit;
}

function reviewedRequest(
  server: AgentRequestsOptions['server'],
  webhooks: Admission['webhooks'],
  model: ModelRequest,
): ReviewedRequest | undefined {
  const { method, path, actor, body } = model;
  if (method === 'GET') return undefined;
  const { resource, subresource, namespace, name } = objectOfPath(path);
  // The model has two users for one service account of the agent.
  const target = { operation: operations[method], resource, subresource, namespace, name, actor: { ...actor, user: agentUser } };
  if (!webhooks.some(({ covers }) => covers(target))) return undefined;
  const stored = server.get(resource, namespace, name);
  if (method === 'POST' && stored === undefined)
    return { ...target, name: textAt(parsed(body), 'metadata', 'name') ?? '', object: jsonOf(body) };
  if (stored === undefined) return undefined;
  const known = { ...target, uid: stored.metadata.uid };
  if (method === 'POST') return { ...known, object: jsonOf(body) };
  if (method === 'DELETE') return { ...known, oldObject: stored };
  return updateOf(server, model, known, stored);
}

/** Returns the update with both objects; undefined if it would fail. */
function updateOf(
  server: AgentRequestsOptions['server'],
  model: ModelRequest,
  known: ReviewedRequest,
  stored: ModelObject,
): ReviewedRequest | undefined {
  const { path } = model;
  const oldObject = known.subresource === 'scale' ? readBy(server, { ...model, method: 'GET' }) : stored;
  const object = readBy(server, { ...model, path: `${path}${path.includes('?') ? '&' : '?'}dryRun=All` });
  return object === undefined || oldObject === undefined ? undefined : { ...known, object, oldObject };
}

/** Returns the object in the answer to a request by the API server itself; undefined if the request fails. */
function readBy(server: AgentRequestsOptions['server'], request: ModelRequest): ModelObject | undefined {
  const { status, body } = server.handle({ ...request, actor: { user: 'system:apiserver' } });
  return status < 300 ? (parsed(body) as ModelObject) : undefined;
}

function jsonOf(body: string | undefined): Json {
  return (parsed(body) ?? {}) as Json;
}

function deniedAnswer(code: number, message: string): ModelResponse {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: code === 500 ? 'InternalError' : '',
    code,
  };
  return { status: code, headers: { 'content-type': 'application/json' }, body: JSON.stringify(status) };
}
