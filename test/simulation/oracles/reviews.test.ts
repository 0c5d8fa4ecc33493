import { describe, expect, it } from 'vitest';
import { prepareEndpoint } from '../../../simulation/objects.ts';
import type { Reviewed } from '../../../simulation/oracles/oracle.ts';
import { controller, History } from './history.ts';

const native = (): History => new History({ webhooks: true });
const intents = 'rolloutintents.rollout-group.dev';

function stamped(isRepeat: boolean, overrides: Partial<Reviewed> = {}): Reviewed {
  return {
    request: { operation: 'CREATE', resource: intents, subresource: '', namespace: 'mimir', name: 'approve-1', actor: { user: 'alice' } },
    webhook: { name: 'stamp.rollout-group.dev', path: '/admission/stamp', isMutating: true },
    by: 'a1',
    outcome: 'allowed',
    isRepeat,
    patch: [
      { op: 'test', path: '/kind' },
      { op: 'add', path: '/spec/requestedBy' },
    ],
    hasWarning: false,
    ...overrides,
  };
}

describe('S30', () => {
  it('finds an admitted decrease while a pod of another zone is unavailable, but not at once', () => {
    const history = native();
    history.ready('ing-b-0', false);
    history.advance(5000).scaleAdmitted('ing-c', 2);
    expect(history.said).toEqual([]);
    history.advance(20_000).scaleAdmitted('ing-a', 2);
    expect(history.found('S30')).toEqual(['kubernetes-admin scales ing-a from 3 to 2 while ing-b has unavailable pods: ing-b-0']);
  });

  it('finds an admitted decrease of a member whose answer names no group', () => {
    const history = native();
    history.scaleAdmitted('ing-a', 2, { namesGroup: false });
    expect(history.found('S30')).toEqual(['kubernetes-admin scales ing-a from 3 to 2, and the answer of a1 names no group']);
  });
});

describe('S31', () => {
  it('finds a decrease without a judgement, but no increase', () => {
    const history = native();
    history.scale('ing-a', 4);
    history.advance(100).scaleAdmitted('ing-a', 3, { isJudged: false });
    expect(history.found('S31')).toEqual(['kubernetes-admin scales ing-a from 4 to 3 without a judgement']);
  });

  it('finds a drop-in StatefulSet that shrinks although its label forbids it', () => {
    const history = new History({ kind: 'adopted', webhooks: true });
    history.change('statefulsets.apps', 'ing-a', () => ({ metadata: { labels: { 'grafana.com/no-downscale': 'true' } } }));
    history.scale('ing-a', 2);
    expect(history.found('S31')).toEqual(['kubernetes-admin scales ing-a from 3 to 2, although its label forbids a decrease']);
  });
});

describe('S11', () => {
  it('finds a drop-in StatefulSet that shrinks before its pod was asked to prepare', () => {
    const history = new History({ kind: 'adopted', webhooks: true });
    for (const set of ['ing-a', 'ing-b'])
      history.change('statefulsets.apps', set, () => ({ metadata: { labels: { 'grafana.com/prepare-downscale': 'true' } } }));
    history.call('ing-b-2', 'POST', { path: prepareEndpoint.path });
    history.scale('ing-b', 2);
    history.scale('ing-a', 2);
    expect(history.found('S11')).toEqual(['kubernetes-admin scales ing-a from 3 to 2, and ing-a-2 was never asked to prepare']);
  });
});

describe('S32', () => {
  it('finds a webhook that is asked about a request of the agent', () => {
    const history = native();
    const request = { ...stamped(false).request, actor: history.agent() };
    history.review(stamped(false, { request }));
    expect(history.found('S32')).toEqual([
      `stamp.rollout-group.dev is asked about CREATE ${intents} approve-1 by system:serviceaccount:mimir:agent`,
    ]);
  });

  it('finds no webhook for pods that a controller deletes and a kubelet changes', () => {
    const history = native();
    history.take('ing-a-2', controller);
    history.remove('pods', 'ing-a-2', { user: 'system:node:node-1' });
    history.ready('ing-a-1', false, { user: 'system:node:node-1' });
    expect(history.found('S32')).toEqual([]);
  });

  it('finds a webhook that may deny the change of a member by a controller', () => {
    const history = native();
    history.change('statefulsets.apps', 'ing-a', () => ({ metadata: { labels: { x: '1' } } }), controller);
    expect(history.found('S32')).toEqual([
      'statefulset-update.enforce.rollout-group.dev may deny UPDATE statefulsets.apps ing-a by system:serviceaccount:kube-system:statefulset-controller',
    ]);
  });
});

describe('S33', () => {
  it('finds a repeated mutation that changes the result, except with another clock', () => {
    const history = native();
    history.review(stamped(false));
    history.review(stamped(true, { patch: [] }));
    expect(history.said).toEqual([]);
    history.review(stamped(true));
    const found = `stamp.rollout-group.dev changes its own result for CREATE ${intents} approve-1 by alice`;
    expect(history.found('S33')).toEqual([found]);
    history.clocks.set('b1', { rate: 1, wallErrorMs: 40_000 });
    history.review(stamped(true, { by: 'b1' }));
    expect(history.found('S33')).toEqual([found]);
  });

  it('finds a patch that tests nothing first', () => {
    const history = native();
    history.review(stamped(false, { patch: [{ op: 'add', path: '/spec/requestedBy' }] }));
    expect(history.found('S33')).toEqual([`the patch of stamp.rollout-group.dev for CREATE ${intents} approve-1 by alice tests nothing`]);
  });
});
