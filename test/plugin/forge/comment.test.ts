// The verb comment against loopback servers that speak the APIs of GitHub and GitLab, with their errors.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pauseMs } from '../../../plugin/forge/retry.ts';
import { renderPlanMarkdown } from '../../../plugin/output/plan/markdown.ts';
import { runInProcess } from '../in-process.ts';
import { ingester, planOf, unchanged } from '../plan-kit.ts';
import { folderWith } from '../process.ts';
import { type FakeForge, type Fault, gitHubJob, gitLabJob, headCommit, invalid, serveForge, token } from './forge-server.ts';

const rollout = renderPlanMarkdown(planOf([ingester()]));
const other = renderPlanMarkdown(planOf([ingester(), unchanged()]));
const inDefault = (text: string): string => text.replace('rollout-group:plan', 'rollout-group:plan env=default');

const pullRequestEvent = JSON.stringify({ pull_request: { number: 7, head: { sha: headCommit } } });
const workflowRunEvent = JSON.stringify({
  workflow_run: { head_sha: headCommit, head_branch: 'x y', head_repository: { owner: { login: 'someone' } } },
});

interface Posted {
  readonly text?: string;
  readonly args?: readonly string[];
  readonly event?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the verb in a job and checks that the token is in no output. */
async function post(forge: FakeForge, { text = rollout, args = [], event, env = {} }: Posted = {}, job = gitHubJob) {
  const cwd = folderWith({ 'plan.md': text, 'event.json': event ?? '{}' });
  const words = ['comment', 'plan.md', ...args];
  const ended = await runInProcess(words, {
    cwd,
    env: { ...job(forge, event === undefined ? undefined : join(cwd, 'event.json')), ...env },
  });
  expect(ended.stdout + ended.stderr).not.toContain(token);
  return ended;
}

/** The answers of a forge to a change, with the exit code and the message. */
const faults: readonly (readonly [string, Fault, number, RegExp])[] = [
  ['401', () => ({ status: 401, body: { message: `Bad credentials ${token}` } }), 11, /the token is not valid/],
  [
    '403',
    () => ({ status: 403, body: { message: 'Resource not accessible', echo: token } }),
    11,
    /the token lacks a permission[\s\S]*do: {2}give/,
  ],
  ['409', () => ({ status: 409, body: { message: 'Conflict' } }), 9, /changed at the same time/],
  [
    '422',
    () => invalid('IssueComment', 'body', 'body is too long (maximum is 65536 characters)'),
    5,
    /does not accept the request\n {2}why: \w+ answered 422: Validation Failed: body is too long/,
  ],
  [
    '400',
    () => ({ status: 400, body: { message: { note: ['is too long (maximum is 1000000 characters)'] } } }),
    5,
    /does not accept the request\n {2}why: \w+ answered 400: .*is too long/,
  ],
  ['500', () => ({ status: 500, body: '<html>' }), 12, /has a problem/],
  ['a lost connection', () => 'drop', 12, /gave no answer\n {2}why: no answer \(ECONNRESET\)/],
  ['text', () => ({ status: 200, body: `<html>${token}</html>` }), 12, /is not the JSON of Git/],
  [
    'a redirect to another host',
    () => ({ status: 302, headers: { Location: `https://evil.example/${token}` } }),
    12,
    /redirects to another host.*https:\/\/evil\.example\n/,
  ],
  ['a redirect without end', ({ path }) => ({ status: 307, headers: { Location: path } }), 5, /does not accept the request/],
  ['a rate limit of an hour', () => ({ status: 429, headers: { 'Retry-After': '3600' } }), 12, /the rate limit is reached[\s\S]*after 20/],
];
/** Those that the verb tries again, which takes seconds. One forge is enough: both have the same transport. */
const retried = ['409', '500', 'a lost connection'];

describe.each([
  ['GitHub', gitHubJob],
  ['GitLab', gitLabJob],
] as const)('a comment at %s', (name, job) => {
  const request = name === 'GitHub' ? 'pull request' : 'merge request';
  const serve = async (fault?: Fault): Promise<FakeForge> => {
    const forge = await serveForge(fault);
    if (name === 'GitLab') forge.login = 'project_42_bot';
    return forge;
  };

  it('is created once, left while it is equal, and updated when the text changes', async () => {
    const forge = await serve();
    expect(await post(forge, {}, job)).toEqual({ status: 0, stdout: `default: comment created on ${request} 7\n`, stderr: '' });
    expect((await post(forge, {}, job)).stdout).toBe(`default: comment unchanged on ${request} 7\n`);
    expect(forge.writes).toHaveLength(1);
    expect((await post(forge, { text: other }, job)).stdout).toBe(`default: comment updated on ${request} 7\n`);
    expect(forge.comments.map(({ body }) => body)).toEqual([inDefault(other)]);
  });

  it('prints each request with -v 6, without query and token', async () => {
    const forge = await serve();
    const { stderr } = await post(forge, { args: ['-v', '6'] }, job);
    expect(stderr).toMatch(/^GET \/\S+ 200 \d+ms$/m);
    expect(stderr).toMatch(/^POST \/\S+ 201 \d+ms$/m);
    expect(stderr).not.toContain('?');
  });

  it('is found on the last page, among comments of other environments and users', async () => {
    const forge = await serve();
    forge.add(inDefault(other), 'mallory', 'User');
    forge.add(inDefault(other).replace('env=default', 'env=staging'));
    for (let index = 0; index < 250; index += 1) forge.add(`comment ${index}`, 'someone', 'User');
    const own = forge.add(inDefault(other));
    expect((await post(forge, {}, job)).stdout).toContain('updated');
    expect(own.body).toBe(inDefault(rollout));
    expect(forge.comments).toHaveLength(253);
    expect(forge.comments[0]?.body).toBe(inDefault(other));
  });

  it('is one per environment', async () => {
    const forge = await serve();
    for (const environment of ['production', 'staging', 'production']) await post(forge, { args: ['--environment', environment] }, job);
    expect(forge.comments.map(({ body }) => /env=(\w+)/.exec(body)?.[1])).toEqual(['production', 'staging']);
  });

  it('is created again if it was deleted during the update', async () => {
    const forge = await serve((request, { comments }) => {
      if (request.method === 'PATCH' || request.method === 'PUT') comments.length = 0;
      return undefined;
    });
    forge.add(inDefault(other));
    expect(await post(forge, {}, job)).toMatchObject({ status: 0, stdout: `default: comment created on ${request} 7\n` });
    expect(forge.comments.map(({ body }) => body)).toEqual([inDefault(rollout)]);
  });

  it('keeps the oldest of several', async () => {
    const forge = await serve();
    const [first] = [forge.add(inDefault(other)), forge.add(inDefault(rollout)), forge.add(inDefault(other))];
    await post(forge, {}, job);
    expect(forge.comments).toEqual([first]);
    expect(first?.body).toBe(inDefault(rollout));
  });

  it('is one after two runs at the same time', async () => {
    const forge = await serve();
    const runs = await Promise.all([post(forge, {}, job), post(forge, { text: other }, job), post(forge, {}, job)]);
    expect(runs.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(forge.comments).toHaveLength(1);
  });

  it('is one although the answer to its creation is lost', async () => {
    let isLost = false;
    const forge = await serve((request, { comments }) => {
      if (request.method !== 'POST' || isLost) return undefined;
      isLost = true;
      forge.add(request.body['body'] ?? '');
      expect(comments).toHaveLength(1);
      return 'drop';
    });
    expect(await post(forge, {}, job)).toMatchObject({ status: 0 });
    expect(forge.comments).toHaveLength(1);
  });

  it.each([
    ['complete', rollout, name === 'GitHub' ? 'success' : 'success'],
    ['blocked', renderPlanMarkdown(planOf([ingester({ outcome: 'blocked' })])), name === 'GitHub' ? 'failure' : 'failed'],
    ['waits', renderPlanMarkdown(planOf([ingester({ outcome: 'waits' })])), 'pending'],
  ])('comes with the status of a plan that %s', async (outcome, text, state) => {
    const forge = await serve();
    for (const _ of [1, 2]) {
      const { status, stdout } = await post(forge, { text, args: ['--status'], event: pullRequestEvent }, job);
      expect({ status, stdout }).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(`default: commit status set on ${headCommit} (${outcome})`),
      });
    }
    const [first] = forge.statuses;
    expect([first?.['state'], first?.['context'] ?? first?.['name']]).toEqual([state, 'rollout-group/default']);
    expect(first?.['target_url']).toMatch(/^https:/);
  });

  it('stays as it is if the request has a newer commit, and the old commit gets its status', async () => {
    const forge = await serve();
    forge.head = 'b'.repeat(40);
    const ended = await post(forge, { args: ['--status'], event: pullRequestEvent }, job);
    expect(ended).toMatchObject({ status: 0, stderr: expect.stringContaining('has a newer commit') });
    expect(forge.comments).toEqual([]);
    expect(forge.requests.at(-1)?.path).toMatch(new RegExp(`/statuses/${headCommit}$`));
  });

  it.each(name === 'GitHub' ? ['closed'] : ['closed', 'merged'])('stays as it is if the request is %s', async (state) => {
    const forge = await serve();
    const own = forge.add(inDefault(other));
    forge.state = state;
    const ended = await post(forge, {}, job);
    expect(ended).toMatchObject({ status: 0, stdout: '', stderr: expect.stringContaining(`note: the ${request} is closed`) });
    expect([own.body, forge.writes]).toEqual([inDefault(other), []]);
  });

  it.each(faults.filter(([label]) => name === 'GitHub' || !retried.includes(label)))(
    'has the cause and the remedy after %s',
    async (_, fault, exitCode, text) => {
      const forge = await serve((request) => (request.method === 'GET' ? undefined : fault(request, forge)));
      forge.add(inDefault(other));
      const ended = await post(forge, {}, job);
      expect(ended.status).toBe(exitCode);
      expect(ended.stderr).toMatch(text);
      expect(ended.stderr).toMatch(/^error: cannot update a comment on (?:pull|merge) request 7|redirects/);
      expect(ended.stderr).toMatch(/\n {2}do: {2}\w/);
    },
  );

  it('has no pull request', async () => {
    const ended = await post(await serve(), { args: ['--pull-request', '8'] }, job);
    expect(ended).toMatchObject({ status: 10, stderr: expect.stringContaining('it does not exist, or the token may not read it') });
  });

  it('is posted after a server error, a conflict, a short rate limit and a redirect on the same host', async () => {
    const answers = [
      { status: 502, body: 'Bad gateway' },
      { status: 409, body: {} },
      { status: 403, headers: { 'Retry-After': '1' }, body: { message: 'You have exceeded a secondary rate limit' } },
    ];
    const forge = await serve((request) => {
      if (request.path.includes('moved')) return { ...forge.answer({ ...request, path: request.path.replace('/moved', '') }) };
      if (request.method === 'PATCH' || request.method === 'PUT') return answers.shift();
      return request.method === 'POST' ? { status: 307, headers: { Location: `/moved${request.path}` } } : undefined;
    });
    expect((await post(forge, {}, job)).stdout).toContain('created');
    expect((await post(forge, { text: other }, job)).stdout).toContain('updated');
    expect(answers).toEqual([]);
  });
});

describe('the pull request of a comment', () => {
  it('is the pull request of the event workflow_run, found by its head', async () => {
    const forge = await serveForge();
    forge.pulls = [
      { number: 8, head: { sha: 'b'.repeat(40) } },
      { number: 7, head: { sha: headCommit } },
    ];
    const ended = await post(forge, { event: workflowRunEvent, env: { GITHUB_REF: 'refs/heads/main' } });
    expect(ended).toMatchObject({ status: 0, stdout: 'default: comment created on pull request 7\n' });
    expect(forge.requests[0]?.path).toContain('head=someone%3Ax%20y');
  });

  it('may have closed since the event', async () => {
    const forge = await serveForge();
    const ended = await post(forge, { event: workflowRunEvent, args: ['--status'], env: { GITHUB_REF: 'refs/heads/main' } });
    expect(ended).toMatchObject({ status: 0, stderr: expect.stringContaining('is closed') });
    expect(forge.writes).toEqual([`POST /api/v3/repos/acme/infra/statuses/${headCommit}`]);
  });

  it('can be named outside of a job', async () => {
    const forge = await serveForge();
    const args = ['--forge', 'github', '--api', `${forge.origin}/api/v3/`, '--repository', 'acme/infra', '--pull-request', '7'];
    const cwd = folderWith({ 'plan.md': rollout });
    expect(await runInProcess(['comment', 'plan.md', ...args], { cwd, env: { GITHUB_TOKEN: `${token}\n` } })).toMatchObject({ status: 0 });
  });

  it.each<readonly [string, Readonly<Record<string, string>>, readonly string[], number, RegExp]>([
    ['no forge', { GITHUB_REPOSITORY: '' }, [], 3, /whether to use GitHub or GitLab/],
    ['no pull request', { GITHUB_REF: 'refs/heads/main' }, [], 3, /no pull request is named/],
    ['a path as repository', { GITHUB_REPOSITORY: '../x' }, [], 3, /no repository is named/],
    ['no token', { GITHUB_TOKEN: '' }, [], 11, /GITHUB_TOKEN is not set/],
    [
      'only a job token',
      { CI_JOB_TOKEN: 'x', CI_PROJECT_ID: '1' },
      ['--forge', 'gitlab', '--pull-request', '7'],
      11,
      /CI_JOB_TOKEN can write neither/,
    ],
    ['a token of two lines', { GITHUB_TOKEN: `${token}\nx` }, [], 3, /the token has a space/],
    ['an address without TLS', {}, ['--api', 'http://forge.example'], 3, /http:\/\/forge\.example has no TLS/],
    ['credentials in the address', {}, ['--api', 'https://canary-token-4f1c@forge.example'], 3, /not an https URL without user/],
    ['a status without a commit', {}, ['--status'], 3, /--status needs the commit/],
    ['a name that is no environment', {}, ['--environment', 'a b'], 3, /the name of the environment is not/],
  ])('is not searched with %s', async (_, env, args, exitCode, text) => {
    const forge = await serveForge();
    const ended = await post(forge, { env, args });
    expect(ended).toMatchObject({ status: exitCode, stdout: '', stderr: expect.stringMatching(text) });
    expect(forge.requests).toEqual([]);
  });
});

describe('the file of a comment', () => {
  it.each<readonly [string, string, number, RegExp]>([
    ['no marker', '### Rollout plan', 4, /does not begin with the marker/],
    ['the marker later', `x\n${rollout}`, 4, /does not begin with the marker/],
    ['more than the forge takes', `${rollout}${'x'.repeat(65_536)}`, 3, /a comment can have at most 65536/],
    ['a mention', `${rollout}\n@team`, 4, /plan\.md:\d+ has text that GitHub or GitLab acts on: "@team"/],
    ['an encoded mention', `${rollout}\n&#64;team`, 4, /"@team"/],
    ['a link', `${rollout}\n[x](https://evil.example)`, 4, /acts on/],
    ['an address', `${rollout}\nhttps://evil.example`, 4, /acts on/],
    ['HTML', `${rollout}\n<img src="x">`, 4, /acts on/],
    ['a quick action', `${rollout}\n/merge`, 4, /"\/merge"/],
    ['a carriage return', `${rollout}\nx\r/merge`, 4, /acts on/],
    ['code that ends early', `${rollout}\n\`\`\` a\n@team\n\`\`\``, 4, /acts on/],
    ['a code block inside HTML', `${rollout}\n<details>\n\`\`\`\n@team\n\`\`\`\n</details>`, 4, /acts on/],
    ['a code block that the text closes', `${rollout}\n\n\`\`\`\nx\n\`\`\`\`\n@team`, 4, /acts on/],
    ['code across cells', `${rollout}\n| a | b |\n| --- | --- |\n| \`a | @team\` |`, 4, /acts on/],
    ['code in HTML', `${rollout}\n<details><summary>\`@team\`</summary>`, 4, /acts on/],
    ['a diagram', `${rollout}\n\n\`\`\`mermaid\ngraph TD\n\`\`\``, 4, /acts on/],
    ['a link definition', `${rollout}\n[x]: https://evil.example`, 4, /acts on/],
  ])('is not posted with %s', async (_, text, exitCode, message) => {
    const forge = await serveForge();
    expect(await post(forge, { text })).toMatchObject({ status: exitCode, stderr: expect.stringMatching(message) });
    expect(forge.requests).toEqual([]);
  });

  it('is read in time with any content', async () => {
    const forge = await serveForge();
    const runs = Array.from({ length: 340 }, (_, index) => '`'.repeat(index + 1)).join(' ');
    for (const text of [`${'-'.repeat(60_000)}x`, '`a '.repeat(20_000), runs, `${'| '.repeat(30_000)}\n| - |`, '<b'.repeat(30_000)]) {
      const startMs = Date.now();
      const ended = await post(forge, { text: `${rollout.split('\n')[0]}\n\n${text}` });
      expect(ended.stderr).not.toContain('marker');
      expect(Date.now() - startMs).toBeLessThan(5_000);
    }
  });

  it('may contain such text as code', async () => {
    const forge = await serveForge();
    const text = `${rollout}\n- \`image@sha256:1\` \`\`a\`@me\`\` \`a|b\`\n\n\`\`\`yaml\n@team: [x](y)\n\`\`\`\n`;
    expect(await post(forge, { text })).toMatchObject({ status: 0 });
  });

  it('may contain several environments, and then replaces the comment of each', async () => {
    const forge = await serveForge();
    for (const name of ['staging', 'production']) await post(forge, { args: ['--environment', name] });
    const text = rollout.replace(/plan outcome=\w+/, 'review env=staging,production outcome=complete,blocked');
    const ended = await post(forge, { text, args: ['--status'], event: pullRequestEvent });
    expect(ended.stdout.split('\n')[0]).toBe('staging, production: comment updated on pull request 7');
    expect(forge.comments.map(({ body }) => body)).toEqual([text]);
    expect(forge.statuses.map(({ context, state }) => [context, state])).toEqual([
      ['rollout-group/staging', 'success'],
      ['rollout-group/production', 'failure'],
    ]);
  });

  it('is of one environment', async () => {
    const forge = await serveForge();
    const text = inDefault(rollout).replace('env=default', 'env=production');
    expect((await post(forge, { text })).stdout).toBe('production: comment created on pull request 7\n');
    expect(await post(forge, { text, args: ['--environment', 'staging'] })).toMatchObject({ status: 3 });
    const cwd = folderWith({ 'a.md': text, 'b.md': text });
    const twice = await runInProcess(['comment', 'a.md', 'b.md'], { cwd, env: gitHubJob(forge) });
    expect(twice).toMatchObject({ status: 3, stderr: expect.stringContaining('the environment production is named twice') });
  });
});

const nowMs = Date.parse('2026-11-26T10:00:00Z');
const inSeconds = (seconds: number): string => String(nowMs / 1000 + seconds);
const secondary = '{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}';

interface Answered {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function pauses({ status, headers = {}, body = '' }: Answered, isRepeatable = true): readonly (number | undefined)[] {
  return [1, 2, 3].map((attempt) => pauseMs({ status, headers, body }, { isRepeatable }, nowMs, attempt));
}

describe('the pause before a second request', () => {
  it.each<readonly [string, Answered, readonly (number | undefined)[]]>([
    ['as long as Retry-After', { status: 403, headers: { 'retry-after': '30' }, body: secondary }, [30_000, 30_000, 30_000]],
    ['a minute or more after a limit without an end', { status: 403, body: secondary }, [60_000, 120_000, undefined]],
    [
      'a minute or more also if the hourly limit of GitHub ends later',
      { status: 429, headers: { 'x-ratelimit-remaining': '4000', 'x-ratelimit-reset': inSeconds(3_000) }, body: secondary },
      [60_000, 120_000, undefined],
    ],
    [
      'until the hourly limit of GitHub ends',
      { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(45) } },
      [45_000, 45_000, 45_000],
    ],
    [
      'none if the hourly limit ends too late',
      { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(3_000) } },
      [undefined, undefined, undefined],
    ],
    ['until the limit of GitLab ends', { status: 429, headers: { 'ratelimit-reset': inSeconds(20) } }, [20_000, 20_000, 20_000]],
    [
      'a minute or more after the limit of one endpoint of GitLab',
      { status: 429, body: '{"message":{"error":"This endpoint has been requested too many times. Try again later."}}' },
      [60_000, 120_000, undefined],
    ],
    [
      'none without a permission',
      { status: 403, body: '{"message":"Resource not accessible by integration"}' },
      [undefined, undefined, undefined],
    ],
    ['short after an error of the forge', { status: 502 }, [500, 1_000, 2_000]],
    ['short after a conflict', { status: 409 }, [500, 1_000, 2_000]],
    ['none after a value that the forge does not accept', { status: 422 }, [undefined, undefined, undefined]],
  ])('is %s', (_, answer, expected) => {
    expect(pauses(answer)).toEqual(expected);
  });

  it('does not exist after an error if a second request could have a second effect, except for a rate limit', () => {
    expect(pauses({ status: 502 }, false)).toEqual([undefined, undefined, undefined]);
    expect(pauses({ status: 429, headers: { 'retry-after': '1' } }, false)).toEqual([1_000, 1_000, 2_000]);
  });
});
