import { describe, expect, it } from 'vitest';
import { appliedCommit, applierOf } from '../../../engine/observe/applier.ts';

const [one, two] = ['1', '2'].map((digit) => digit.repeat(40));
const set = { namespace: 'mimir', name: 'ingester-zone-a' };

describe('the object that applied a StatefulSet', () => {
  it.each([
    [
      { labels: { 'kustomize.toolkit.fluxcd.io/name': 'mimir', 'kustomize.toolkit.fluxcd.io/namespace': 'flux-system' } },
      'Kustomization flux-system/mimir',
    ],
    [{ labels: { 'kustomize.toolkit.fluxcd.io/name': 'mimir' } }, undefined],
    [{ annotations: { 'argocd.argoproj.io/tracking-id': 'mimir:apps/StatefulSet:mimir/ingester-zone-a' } }, 'Application argocd/mimir'],
    [{ annotations: { 'argocd.argoproj.io/tracking-id': 'team_mimir:apps/StatefulSet:mimir/ingester-zone-a' } }, 'Application team/mimir'],
    [{ labels: { 'argocd.argoproj.io/instance': 'mimir' } }, 'Application argocd/mimir'],
    [{ labels: { 'helm.toolkit.fluxcd.io/name': 'mimir' } }, undefined],
    [{}, undefined],
  ])('follows from its labels and annotations: %j', (metadata, expected) => {
    const applier = applierOf({ labels: {}, annotations: {}, ...metadata } as never, 'argocd');
    expect(applier && `${applier.kind} ${applier.namespace}/${applier.name}`).toBe(expected);
  });
});

describe('the applied commit', () => {
  const inventory = { entries: [{ id: 'mimir_ingester-zone-a_apps_StatefulSet', v: 'v1' }] };
  const resources = [{ group: 'apps', kind: 'StatefulSet', ...set }];
  const running = (sync: object, compared: object = {}) => ({
    resources,
    sync: compared,
    operationState: { phase: 'Running', operation: { sync }, syncResult: { revision: one } },
  });

  it.each([
    ['a branch of Flux', { inventory, lastAppliedRevision: `main@sha1:${one}`, lastAttemptedRevision: `main@sha1:${two}` }, two],
    ['a detached commit of Flux', { inventory, lastAttemptedRevision: `sha1:${two}` }, two],
    ['the digest of an OCI artifact', { inventory, lastAttemptedRevision: `latest@sha256:${'a'.repeat(64)}` }, undefined],
    ['a Kustomization without this StatefulSet', { inventory: { entries: [] }, lastAttemptedRevision: `main@sha1:${two}` }, undefined],
    ['a finished sync', { resources, sync: { revision: two }, operationState: { phase: 'Succeeded', syncResult: { revision: one } } }, one],
    ['a running sync', running({ revision: two }), two],
    ['a running sync of a branch', running({ revision: 'main' }, { revision: two }), two],
    ['several sources, of which one is a chart', running({ revisions: ['5.8.0', two] }), two],
    ['an Application without this StatefulSet', { operationState: { phase: 'Succeeded', syncResult: { revision: one } } }, undefined],
    ['no status', undefined, undefined],
  ])('is that of %s', (_, status, expected) => {
    expect(appliedCommit({ status }, set)).toBe(expected);
  });

  it('is unknown without the object', () => {
    expect(appliedCommit(undefined, set)).toBeUndefined();
  });
});
