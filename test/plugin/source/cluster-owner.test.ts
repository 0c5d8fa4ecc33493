import { describe, expect, it } from 'vitest';
import { gitOpsOwner, replicaOwners } from '../../../plugin/source/cluster/git-ops-owner.ts';

const replicas = { 'f:spec': { 'f:replicas': {} } };

function managed(...managers: readonly { readonly manager: string; readonly fields?: object; readonly subresource?: string }[]) {
  const managedFields = managers.map(({ manager, fields = { 'f:spec': {} }, subresource }) => ({
    manager,
    operation: 'Apply',
    fieldsV1: fields,
    ...(subresource === undefined ? {} : { subresource }),
  }));
  return { kind: 'StatefulSet', metadata: { name: 'a', managedFields } };
}

describe('the tool that syncs an object from Git', () => {
  it.each([
    ['argocd-controller', 'Argo CD'],
    ['argocd-application-controller', 'Argo CD'],
    ['kustomize-controller', 'Flux'],
    ['helm-controller', 'Flux'],
    ['flux-client-side-apply', 'Flux'],
    ['helm', 'Helm'],
  ])('is identified by the field manager %s', (manager, tool) => {
    expect(gitOpsOwner(managed({ manager }))).toEqual({ tool, evidence: `field manager ${manager}`, ownsReplicas: false });
  });

  it.each(['kubectl-client-side-apply', 'kube-controller-manager', 'rollout-group', 'rollout-operator', 'helmet'])(
    'is not %s',
    (manager) => {
      expect(gitOpsOwner(managed({ manager, fields: replicas }))).toBeUndefined();
    },
  );

  it('is identified by its labels and annotations, with the name of the application', () => {
    const metadata = { annotations: { 'argocd.argoproj.io/tracking-id': 'mimir:apps/StatefulSet:mimir/a' } };
    expect(gitOpsOwner({ metadata })).toMatchObject({
      tool: 'Argo CD',
      of: 'mimir',
      evidence: 'annotation argocd.argoproj.io/tracking-id',
    });
    expect(gitOpsOwner({ metadata: { labels: { 'kustomize.toolkit.fluxcd.io/name': 'apps' } } })).toMatchObject({
      tool: 'Flux',
      of: 'apps',
    });
  });

  it('is not identified by the status', () => {
    expect(gitOpsOwner(managed({ manager: 'argocd-controller', subresource: 'status' }))).toBeUndefined();
  });

  it('sets replicas or does not set them', () => {
    expect(gitOpsOwner(managed({ manager: 'helm', fields: replicas }))?.ownsReplicas).toBe(true);
    expect(replicaOwners(managed({ manager: 'helm' }, { manager: 'kubectl', fields: replicas }))).toEqual(['kubectl']);
    expect(replicaOwners({})).toEqual([]);
  });
});
