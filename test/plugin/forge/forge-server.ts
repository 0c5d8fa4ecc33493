// GitHub and GitLab on loopback: the documented REST API of comments and commit statuses, with the faults of a test.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export const token = 'canary-token-4f1c';
export const headCommit = 'a'.repeat(40);

export interface StoredComment {
  id: number;
  body: string;
  readonly login: string;
  readonly type: 'Bot' | 'User';
  readonly system?: boolean;
}

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, string>;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Answers instead of the forge. `drop` closes the connection; undefined lets the forge answer. */
export type Fault = (request: Sent, forge: FakeForge) => Answer | 'drop' | undefined;

export class FakeForge {
  readonly comments: StoredComment[] = [];
  readonly statuses: Record<string, string>[] = [];
  readonly requests: Sent[] = [];
  /** The owner of the token. A user can be read from the API, a bot of GitHub cannot. */
  login = 'github-actions[bot]';
  head = headCommit;
  /** The state of pull request 7 at GitHub (open or closed) and of merge request 7 at GitLab (opened, closed, locked or merged). */
  state: string | undefined;
  pulls: { readonly number: number; readonly head: { readonly sha: string } }[] = [];
  fault: Fault | undefined;
  origin = '';
  #nextId = 1000;

  add(body: string, login: string = this.login, type: StoredComment['type'] = login.endsWith(']') ? 'Bot' : 'User'): StoredComment {
    const comment = { id: this.#nextId++, body, login, type };
    this.comments.push(comment);
    return comment;
  }

  /** The requests that changed something, as `METHOD path`. */
  get writes(): readonly string[] {
    return this.requests.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`);
  }

  answer(request: Sent): Answer {
    const { method, path } = request;
    if (request.headers.authorization !== `Bearer ${token}` && request.headers['private-token'] !== token)
      return { status: 401, body: { message: 'Bad credentials' } };
    const url = new URL(path, this.origin);
    const end = url.pathname.replace(/^\/(?:api\/v3|gitlab\/api\/v4)/, '');
    if (end === '/user') return this.#user(path);
    if (/\/pulls$/.test(end)) return { status: 200, body: this.pulls };
    if (/\/(?:pulls|merge_requests)\/7$/.test(end)) {
      const state = this.state ?? (end.includes('/pulls/') ? 'open' : 'opened');
      return { status: 200, body: { state, head: { sha: this.head }, sha: this.head } };
    }
    if (/\/statuses\/[0-9a-f]+$/.test(end)) return this.#status(request);
    const id = Number(/\/(?:comments|notes)\/(\d+)$/.exec(end)?.[1]);
    if (Number.isInteger(id)) {
      const text = request.body['body'] ?? '';
      return (method === 'DELETE' ? undefined : refusedComment(path, text)) ?? this.#change(method, id, text);
    }
    if (!/\/(?:issues|merge_requests)\/7\/(?:comments|notes)$|^\/repositories\/1\/issues\/7\/comments$/.test(end))
      return { status: 404, body: { message: 'Not Found' } };
    if (method === 'GET') return this.#list(url);
    return refusedComment(path, request.body['body'] ?? '') ?? { status: 201, body: shown(this.add(request.body['body'] ?? '')) };
  }

  #user(path: string): Answer {
    if (this.login.endsWith(']') && !path.includes('gitlab'))
      return { status: 403, body: { message: 'Resource not accessible by integration' } };
    return { status: 200, body: { login: this.login, username: this.login } };
  }

  #status({ body, path }: Sent): Answer {
    const refused = refusedStatus(path, body['description'] ?? '');
    if (refused !== undefined) return refused;
    const name = body['context'] ?? body['name'];
    const last = this.statuses.findLast((one) => (one['context'] ?? one['name']) === name);
    if (body['name'] !== undefined && last?.['state'] === body['state'] && body['state'] === 'pending')
      return {
        status: 400,
        body: { message: 'Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition)' },
      };
    this.statuses.push(body);
    return { status: 201, body: {} };
  }

  #change(method: string, id: number, body: string): Answer {
    const index = this.comments.findIndex((comment) => comment.id === id);
    const found = this.comments[index];
    if (found === undefined) return { status: 404, body: { message: 'Not Found' } };
    if (method === 'DELETE') {
      this.comments.splice(index, 1);
      return { status: 204 };
    }
    found.body = body;
    return { status: 200, body: shown(found) };
  }

  #list(url: URL): Answer {
    const [page, size] = [Number(url.searchParams.get('page') ?? 1), Number(url.searchParams.get('per_page') ?? 30)];
    const items = this.comments.slice((page - 1) * size, page * size).map(shown);
    const isLast = page * size >= this.comments.length;
    // GitHub links the pages by the id of the repository.
    const path = url.pathname.replace(/\/repos\/[^/]+\/[^/]+/, '/repositories/1');
    const linkTo = (target: number, rel: string): string => {
      url.searchParams.set('page', `${target}`);
      return `<https://forge.example${path}${url.search}>; rel="${rel}"`;
    };
    const links = [
      ...(page === 1 ? [] : [linkTo(page - 1, 'prev')]),
      ...(isLast ? [] : [linkTo(page + 1, 'next')]),
      ...(isLast && page === 1 ? [] : [linkTo(1, 'first'), linkTo(Math.ceil(this.comments.length / size), 'last')]),
    ];
    return { status: 200, body: items, ...(links.length === 0 ? {} : { headers: { Link: links.join(', ') } }) };
  }
}

/** The answers to a comment and to the description of a status above the limit of GitHub or GitLab, in their own forms. */
function refusedComment(path: string, text: string): Answer | undefined {
  if (path.startsWith('/gitlab/'))
    return text.length > 1_000_000
      ? { status: 400, body: { message: { note: ['is too long (maximum is 1000000 characters)'] } } }
      : undefined;
  return text.length > 65_536 ? invalid('IssueComment', 'body', 'body is too long (maximum is 65536 characters)') : undefined;
}

function refusedStatus(path: string, text: string): Answer | undefined {
  if (path.startsWith('/gitlab/'))
    return text.length > 255 ? { status: 400, body: { message: { description: ['is too long (maximum is 255 characters)'] } } } : undefined;
  return text.length > 140 ? invalid('Status', 'description', 'description is too long (maximum is 140 characters)') : undefined;
}

/** Returns the answer of GitHub to a value that it does not accept. */
export function invalid(resource: string, field: string, message: string): Answer {
  return { status: 422, body: { message: 'Validation Failed', errors: [{ resource, code: 'custom', field, message }] } };
}

function shown({ id, body, login, type, system = false }: StoredComment): object {
  return { id, body, user: { login, type }, author: { username: login }, system };
}

/** Serves a forge until the test ends. */
export async function serveForge(fault?: Fault): Promise<FakeForge> {
  const forge = new FakeForge();
  forge.fault = fault;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const { method = '', url: path = '', headers } = request;
      const sent: Sent = { method, path, headers, body: text === '' ? {} : JSON.parse(text) };
      forge.requests.push(sent);
      const answer = forge.fault?.(sent, forge) ?? forge.answer(sent);
      if (answer === 'drop') request.socket.destroy();
      else write(response, answer);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  forge.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return forge;
}

function write(response: ServerResponse, { status, headers = {}, body }: Answer): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
}

/** The environment of a job of GitHub Actions for pull request 7. */
export function gitHubJob(forge: FakeForge, eventFile?: string): Record<string, string> {
  return {
    GITHUB_TOKEN: token,
    GITHUB_API_URL: `${forge.origin}/api/v3`,
    GITHUB_REPOSITORY: 'acme/infra',
    GITHUB_REF: 'refs/pull/7/merge',
    GITHUB_SERVER_URL: 'https://github.example',
    GITHUB_RUN_ID: '99',
    ...(eventFile === undefined ? {} : { GITHUB_EVENT_PATH: eventFile }),
  };
}

/** The environment of a job of GitLab CI for merge request 7. */
export function gitLabJob(forge: FakeForge): Record<string, string> {
  return {
    GITLAB_TOKEN: token,
    CI_API_V4_URL: `${forge.origin}/gitlab/api/v4`,
    CI_PROJECT_ID: '42',
    CI_MERGE_REQUEST_IID: '7',
    CI_COMMIT_SHA: headCommit,
    CI_JOB_TOKEN: 'job-token',
    CI_JOB_URL: 'https://gitlab.example/job/1',
  };
}
