import { describe, expect, it } from 'vitest';
import { judgeTermination } from '../../../scripts/soak/judges/termination.ts';
import type { Oracle } from '../../../simulation/oracles/oracle.ts';
import type { Commit } from '../../../simulation/server/request.ts';
import { History } from './history.ts';

/** The judge, which saw a first commit of the deletion, and the history that it judges. */
function judged(): { readonly history: History; readonly judge: Oracle; readonly see: (commit: Commit) => void } {
  const history = new History();
  const judge = judgeTermination(history.scene);
  const see = (commit: Commit): void => judge.committed?.(commit);
  see(history.change('statefulsets.apps', 'ing-a', () => ({ metadata: { annotations: { gone: 'soon' } } })));
  return { history, judge, see };
}

describe('the judge of a namespace that is deleted', () => {
  it("finds 'S4' if an agent disrupts a pod later than 10 s after the deletion began", () => {
    const { history, see } = judged();
    see(history.advance(9000).take('ing-a-2'));
    expect(history.found('S4')).toEqual([]);
    see(history.advance(2000).take('ing-a-1'));
    expect(history.found('S4')).toEqual(['a1 disrupts ing-a-1 in the namespace mimir, which is being deleted']);
  });

  it.each([0, 2])("finds 'L9' if the status is Ready although the pod %i is missing", (ordinal) => {
    const { history, see } = judged();
    const ready = () => ({ status: { conditions: [{ type: 'Ready', status: 'True' }] } });
    const publish = () => history.change('rolloutgroups.rollout-group.dev', 'ing', ready, history.agent());
    see(publish());
    history.advance(20_000);
    see(publish());
    expect(history.found('L9')).toEqual([]);
    history.remove('pods', `ing-b-${ordinal}`);
    see(publish());
    expect(history.found('L9')).toEqual([
      `the status of ing is Ready although ing-b-${ordinal} is missing in the namespace mimir, which is being deleted`,
    ]);
  });

  it("finds 'L13' if the API server refuses more than 60 creations of a process in a minute", () => {
    const { history, judge } = judged();
    const refuse = (count: number, process: string): void => {
      for (let index = 0; index < count; index += 1) {
        const request = { method: 'POST' as const, path: '/', actor: history.agent(process) };
        const where = { resource: 'events.events.k8s.io', namespace: 'mimir', name: '', subresource: '', isDryRun: false, revisions: [] };
        judge.answered?.({ ...where, request, atMs: history.nowMs, verb: 'create', status: 403 });
      }
    };
    refuse(60, 'a1');
    refuse(60, 'b1');
    history.advance(61_000);
    refuse(60, 'a1');
    expect(history.found('L13')).toEqual([]);
    refuse(1, 'a1');
    expect(history.found('L13')).toEqual([
      'a1 was refused 61 creations in a minute, the last of events.events.k8s.io, in the namespace mimir, which is being deleted',
    ]);
  });
});
