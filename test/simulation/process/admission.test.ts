import { describe, expect, it } from 'vitest';
import { createAdmission } from '../../../scripts/soak/webhooks/admission.ts';
import { installedWebhooks } from '../../../scripts/soak/webhooks/installed.ts';
import type { ReviewedRequest, Reviewer, Verdict } from '../../../simulation/cluster/admitted.ts';
import type { Reviewed } from '../../../simulation/oracles/oracle.ts';
import { createScheduler } from '../../../simulation/scheduler.ts';
import type { Json } from '../../../simulation/server/request.ts';
import type { Answer } from '../../../webhook/review/review.ts';

const protectedNamespace = { agentNamespace: 'rollout-group', namespaces: ['mimir'], hasZoneBudget: false };

/** The verdict and the calls about a request, if every call has this answer; without an answer, no process is ready. */
async function decide(request: ReviewedRequest, answers?: (path: string) => Answer, isEnforced = true) {
  const scheduler = createScheduler(1);
  const life = { name: 'a1', time: { take: (call: () => void) => call(), isAlive: () => true } };
  const reviewer = { life, review: async (path: string) => answers?.(path) ?? { allowed: true } } as unknown as Reviewer;
  const calls: Reviewed[] = [];
  const { ask } = createAdmission({
    scheduler,
    seed: 1,
    webhooks: installedWebhooks({ ...protectedNamespace, isEnforced }),
    reviewers: () => (answers === undefined ? [] : [reviewer]),
    note: () => undefined,
    reviewed: (call) => calls.push(call),
  });
  const verdicts: Verdict[] = [];
  ask(request, (verdict) => verdicts.push(verdict));
  await scheduler.runUntil(60_000);
  return { verdicts, calls: calls.map(({ webhook, outcome }) => `${webhook.name} ${outcome}`) };
}

const scaled = (from: number, to: number, user = 'alice'): ReviewedRequest => {
  const scale = (replicas: number): Json => ({ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: {}, spec: { replicas } });
  const target = {
    resource: 'statefulsets.apps',
    subresource: 'scale',
    namespace: 'mimir',
    name: 'ingester-a',
    uid: 'u1',
    actor: { user },
  };
  return { operation: 'UPDATE', ...target, oldObject: scale(from), object: scale(to) };
};

const judged: Answer = { allowed: true, auditAnnotations: { outcome: 'allow' } };
const dropIn = ['prepare-downscale-mimir.grafana.com', 'no-downscale-mimir.grafana.com'];

describe('the API server', () => {
  it('asks about a decrease the mutating webhook first, and then the webhooks that judge', async () => {
    const { verdicts, calls } = await decide(scaled(3, 2), () => judged);
    expect(calls[0]).toBe(`${dropIn[0]} allowed`);
    expect(calls.slice(1).sort()).toEqual([`${dropIn[1]} allowed`, 'statefulset-scale.enforce.rollout-group.dev allowed']);
    const admission = { by: 'a1', sentAtMs: expect.any(Number), uid: 'u1', isJudged: true, failurePolicy: 'Fail' };
    expect(verdicts).toEqual([{ isAllowed: true, actor: { user: 'alice', admission }, object: scaled(3, 2).object }]);
  });

  it('asks only the webhooks of grafana/rollout-operator about the agent, and about a namespace without enforcement', async () => {
    const agent = 'system:serviceaccount:rollout-group:rollout-group-agent';
    const allowed = dropIn.map((name) => `${name} allowed`);
    expect((await decide(scaled(3, 2, agent), () => judged)).calls).toEqual(allowed);
    expect((await decide(scaled(3, 2), () => judged, false)).calls).toEqual(allowed);
  });

  it('denies a request if one webhook denies it, and tells the first reason', async () => {
    const denies = (path: string): Answer => (path === '/admission/no-downscale' ? { allowed: false, message: 'never' } : judged);
    const message = `admission webhook "${dropIn[1]}" denied the request: never`;
    expect((await decide(scaled(3, 2), denies)).verdicts).toEqual([{ isAllowed: false, status: 400, message }]);
  });

  it('applies the failure policy of each webhook if none answers', async () => {
    expect((await decide(scaled(3, 2))).verdicts).toEqual([
      { isAllowed: false, status: 500, message: `failed calling webhook "${dropIn[0]}"` },
    ]);
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ownerReferences: [{ kind: 'StatefulSet', controller: true }] } };
    const target = { resource: 'pods', subresource: '', namespace: 'mimir', name: 'ingester-a-0', uid: 'u2', actor: { user: 'alice' } };
    const { verdicts, calls } = await decide({ operation: 'DELETE', ...target, oldObject: pod });
    expect(calls).toEqual(['pod-delete.enforce.rollout-group.dev failed']);
    expect(verdicts).toEqual([{ isAllowed: true, actor: { user: 'alice' }, object: {} }]);
  });

  it('decides at once about a request that no webhook receives', async () => {
    expect((await decide({ ...scaled(3, 3), resource: 'deployments.apps' })).calls).toEqual([]);
  });
});
