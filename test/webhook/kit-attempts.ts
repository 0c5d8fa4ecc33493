// Every way to shrink, restart or delete a StatefulSet that a client has, one after the other.
import { type ExecFileException, execFile } from 'node:child_process';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';
import { apply, json, merge, type Outcome, replicas, setsOf, strategic, write } from './kit.ts';

interface Target {
  readonly controlPlane: ControlPlane;
  readonly namespace: string;
  /** A StatefulSet of three replicas. */
  readonly name: string;
  /** Whether nobody protects it: then it must not be given labels that do. */
  readonly isFree?: boolean;
}

interface Way {
  readonly what: string;
  readonly attempt: (on: Target) => Promise<Outcome>;
}

/** As the administrator, on this machine. Ended after `timeoutMs`, which counts as refused. */
export function kubectl({ folder, identities }: ControlPlane, words: readonly string[], timeoutMs = 30_000): Promise<Outcome> {
  return new Promise((settle) => {
    const env = { PATH: process.env['PATH'] ?? '', HOME: folder, KUBECONFIG: identities.admin.kubeconfig };
    execFile('/usr/bin/kubectl', words, { env, timeout: timeoutMs }, (error: ExecFileException | null, stdout, stderr) => {
      settle({ said: `${stdout}${stderr}`, isRefused: error !== null, isTooLate: false, warnings: stderr });
    });
  });
}

const pathOf = ({ namespace, name }: Target): string => `${setsOf(namespace)}/${name}`;
const patched =
  (body: unknown, type: string, suffix = '') =>
  (on: Target): Promise<Outcome> =>
    write(on.controlPlane.client, 'PATCH', `${pathOf(on)}${suffix}`, body, type);
const scaled =
  (spec: object) =>
  (on: Target): Promise<Outcome> => {
    const metadata = { name: on.name, namespace: on.namespace };
    return write(on.controlPlane.client, 'PUT', `${pathOf(on)}/scale`, { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata, spec });
  };
const removed =
  (pathTo: (on: Target) => string) =>
  (on: Target): Promise<Outcome> =>
    write(on.controlPlane.client, 'DELETE', pathTo(on));

/** Whatever version is stored: the controller writes the status meanwhile. */
async function put(on: Target): Promise<Outcome> {
  const { metadata, ...rest } = await on.controlPlane.client.get<StatefulSet>(pathOf(on));
  const { resourceVersion: _, ...kept } = metadata;
  return await write(on.controlPlane.client, 'PUT', pathOf(on), { ...rest, metadata: kept, spec: { ...rest.spec, replicas: 2 } });
}

const otherTemplate = { template: { metadata: { annotations: { changed: 'yes' } } } };
const noLabels = { metadata: { labels: { cell: null, 'rollout-group': null, 'grafana.com/no-downscale': null } } };
const otherLabels = { metadata: { labels: { cell: 'other', 'rollout-group': 'other', 'grafana.com/no-downscale': 'false' } } };

export const ways: readonly Way[] = [
  { what: 'PUT', attempt: put },
  { what: 'a merge patch', attempt: patched(replicas(2), merge) },
  { what: 'a JSON patch', attempt: patched([{ op: 'replace', path: '/spec/replicas', value: 2 }], json) },
  { what: 'a strategic merge patch', attempt: patched(replicas(2), strategic) },
  {
    what: 'a server-side apply',
    attempt: (on) =>
      patched(
        { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: on.name }, ...replicas(2) },
        apply,
        '?fieldManager=me&force=true',
      )(on),
  },
  { what: 'a patch to no replicas at all', attempt: patched(replicas(0), merge) },
  { what: 'a merge patch of /scale', attempt: patched(replicas(2), merge, '/scale') },
  { what: 'a JSON patch of /scale', attempt: patched([{ op: 'replace', path: '/spec/replicas', value: 2 }], json, '/scale') },
  { what: 'a PUT of /scale', attempt: scaled({ replicas: 2 }) },
  { what: 'a PUT of /scale without a number', attempt: scaled({}) },
  {
    what: 'kubectl scale',
    attempt: ({ controlPlane, namespace, name }) =>
      kubectl(controlPlane, ['scale', '-n', namespace, `statefulset/${name}`, '--replicas=2']),
  },
  { what: 'replicas null', attempt: patched(replicas(null), merge) },
  { what: 'replicas removed by a JSON patch', attempt: patched([{ op: 'remove', path: '/spec/replicas' }], json) },
  { what: 'a dry run', attempt: patched(replicas(2), merge, '?dryRun=All') },
  { what: 'a dry run of /scale', attempt: patched(replicas(2), merge, '/scale?dryRun=All') },
  { what: 'labels removed and fewer replicas in one request', attempt: patched({ ...noLabels, ...replicas(2) }, merge) },
  {
    what: 'labels renamed and fewer replicas in one request',
    attempt: (on) =>
      patched({ ...(on.isFree === true ? { metadata: { labels: { team: 'x' } } } : otherLabels), ...replicas(2) }, merge)(on),
  },
  { what: 'other ordinals, so that the first pods go', attempt: patched({ spec: { ordinals: { start: 2 } } }, merge) },
  {
    what: 'another strategy and another template in one request',
    attempt: patched({ spec: { ...otherTemplate, updateStrategy: { type: 'RollingUpdate' } } }, merge),
  },
  {
    what: 'a partition and another template in one request',
    attempt: patched({ spec: { ...otherTemplate, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } } }, merge),
  },
  { what: 'a StatefulSet deleted', attempt: removed(pathOf) },
  {
    what: 'a StatefulSet deleted, its pods orphaned',
    attempt: removed((on) => `${pathOf(on)}?propagationPolicy=Orphan`),
  },
  {
    what: 'deletecollection of StatefulSets',
    attempt: removed(({ namespace, name }) => `${setsOf(namespace)}?fieldSelector=metadata.name%3D${name}`),
  },
];

/** What a StatefulSet loses in a first request, after which a second one is sent. */
export const departures: readonly { readonly what: string; readonly patch: object }[] = [
  { what: 'removed', patch: noLabels },
  { what: 'renamed', patch: otherLabels },
];
