// People who use the plugin on a real control plane, each with no more rights than a test gives them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { Subject } from '../control-plane/certificates.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { type Identity, serviceAccount } from '../control-plane/identities.ts';
import { grant, type Rule } from '../control-plane/roles.ts';
import { type Ended, type InProcess, runInProcess } from './in-process.ts';

/** What plan and diff read of a namespace. */
export const readerRules: readonly Rule[] = [
  { apiGroups: [''], resources: ['pods', 'configmaps'], verbs: ['get', 'list'] },
  { apiGroups: ['apps'], resources: ['statefulsets', 'controllerrevisions'], verbs: ['get', 'list'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['get', 'list'] },
  { apiGroups: ['rollout-operator.grafana.com'], resources: ['zoneawarepoddisruptionbudgets'], verbs: ['get', 'list'] },
  {
    apiGroups: ['rollout-group.dev'],
    resources: ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents'],
    verbs: ['get', 'list'],
  },
];

/** What apply writes besides; a dry run asks for the same. */
export const writerRules: readonly Rule[] = [
  ...readerRules,
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['create', 'patch'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['create', 'patch'] },
  { apiGroups: [''], resources: ['services'], verbs: ['get', 'create', 'patch'] },
  {
    apiGroups: ['rollout-group.dev'],
    resources: ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents'],
    verbs: ['create', 'patch'],
  },
];

/** What the verbs that write requests, and status and history, need. */
export const requesterRules: readonly Rule[] = [
  ...writerRules,
  { apiGroups: [''], resources: ['pods', 'configmaps'], verbs: ['watch'] },
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['watch'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['watch'] },
  { apiGroups: ['rollout-operator.grafana.com'], resources: ['zoneawarepoddisruptionbudgets'], verbs: ['watch'] },
  { apiGroups: ['rollout-group.dev'], resources: ['*'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] },
];

export interface Person {
  readonly identity: Identity;
  /** Runs the plugin as this person, in this namespace. */
  readonly run: (words: readonly string[], options?: InProcess) => Promise<Ended>;
}

/** Somebody with these rights in the namespace. */
export function person(controlPlane: ControlPlane, namespace: string, name: string, rules: readonly Rule[]): Promise<Person> {
  return memberOf(controlPlane, namespace, serviceAccount('people', name), rules);
}

/** The same, with the name and the groups that the API server knows. */
export async function memberOf(controlPlane: ControlPlane, namespace: string, subject: Subject, rules: readonly Rule[]): Promise<Person> {
  const identity = controlPlane.identityOf(subject);
  const { client } = controlPlane;
  await grant(client, identity, namespace, rules);
  // Policies of the agent's namespace may bind a group, so a reader of policies reads them too.
  const ofPolicies = rules.filter(({ apiGroups }) => apiGroups.includes('rollout-group.dev'));
  if (ofPolicies.length > 0) {
    await client.ask('POST', '/api/v1/namespaces', { metadata: { name: usualAgentNamespace } });
    await grant(client, identity, usualAgentNamespace, [
      { apiGroups: ['rollout-group.dev'], resources: ['rolloutpolicies'], verbs: ['list', 'watch'] },
    ]);
  }
  const run = (words: readonly string[], options: InProcess = {}): Promise<Ended> =>
    runInProcess([...words, '-n', namespace], { ...options, env: { KUBECONFIG: identity.kubeconfig, HOME: tmpdir(), ...options.env } });
  // The authorizer hears of a new Role a moment later.
  await untilAllowed(controlPlane, identity, `/apis/apps/v1/namespaces/${namespace}/statefulsets`, rules.length > 0);
  return { identity, run };
}

async function untilAllowed(controlPlane: ControlPlane, identity: Identity, path: string, isAllowed: boolean): Promise<void> {
  const client = controlPlane.clientOf(identity);
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const { status } = await client.ask('GET', path);
    if (!isAllowed || status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${identity.user} may not read ${path} after 5 s`);
}

/** A folder with these files, as JSON where they are no text, removed after the test. */
export function filesOf(files: Readonly<Record<string, unknown>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-live-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content, undefined, 2));
  }
  return folder;
}

/** Objects as `kubectl get -o json` prints them. */
export function listOf(apiVersion: string, kind: string, items: readonly object[]): object {
  return { apiVersion: 'v1', kind: 'List', items: items.map((item) => ({ ...item, apiVersion, kind })) };
}
