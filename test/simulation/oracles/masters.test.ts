import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

const setResource = 'statefulsets.apps';
const groups = 'rolloutgroups.rollout-group.dev';

/** An entry of the managed fields of a StatefulSet. */
const owner = (manager: string, operation: string, spec: object) => ({ manager, operation, fieldsV1: { 'f:spec': spec } });
const image = { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"app"}': { '.': {}, 'f:image': {} } } } } };

function ofGit(...others: readonly object[]): History {
  const history = new History();
  const git = owner('argocd-controller', 'Apply', { 'f:replicas': {}, 'f:template': { 'f:metadata': { 'f:labels': { 'f:name': {} } } } });
  history.change(setResource, 'ing-a', () => ({ metadata: { managedFields: [git, ...others] } }));
  return history;
}

describe('the judge of masters', () => {
  it("finds 'S23' if an agent writes a field of others", () => {
    const history = new History();
    const change = (spec: object, metadata: object = {}) =>
      history.change(setResource, 'ing-a', (set) => ({ spec: { ...(set['spec'] as object), ...spec }, metadata }), history.agent());
    change({ replicas: 4, updateStrategy: { rollingUpdate: { partition: 3 } } }, { annotations: { 'grafana.com/last-downscale': 'x' } });
    expect(history.found('S23')).toEqual([]);
    change({ updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 2 } }, template: { a: 1 } }, { labels: { team: 'x' } });
    expect(history.found('S23')).toEqual([
      'a1 writes metadata.labels.team, spec.updateStrategy.type, spec.template.a of ing-a, which it does not own',
    ]);
  });

  it('finds a field of a person that the status does not count, and one that it counts although the tool reset it', () => {
    const history = ofGit(owner('kubectl-edit', 'Update', image));
    history.end();
    expect(history.found('S23')).toEqual([
      'at the end /f:template/f:spec/f:containers/k:{"name":"app"}/f:image of ing-a are not from Git, and the status of ing counts 0',
    ]);
    const reset = ofGit();
    reset.change(groups, 'ing', () => ({ status: { drift: { fieldCount: 1 } } }));
    reset.end();
    expect(reset.found('S23')).toEqual(['at the end every field is from Git, and the status of ing counts 1']);
  });

  it('accepts what people, autoscalers and agents change on purpose, and a field that is in Git too', () => {
    const onPurpose = { 'f:replicas': {}, 'f:updateStrategy': { 'f:rollingUpdate': { 'f:partition': {} } } };
    const history = ofGit(
      owner('horizontal-pod-autoscaler', 'Update', onPurpose),
      owner('rollout-group-agent', 'Update', image),
      owner('kubectl-edit', 'Update', { 'f:template': { 'f:metadata': { 'f:labels': { 'f:name': {} } } } }),
    );
    history.end();
    const never = new History();
    never.change(setResource, 'ing-a', () => ({ metadata: { managedFields: [owner('kubectl-edit', 'Update', image)] } }));
    never.end();
    expect([...history.found('S23'), ...never.found('S23')]).toEqual([]);
  });
});
