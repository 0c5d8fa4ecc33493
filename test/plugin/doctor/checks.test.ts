import { describe, expect, it } from 'vitest';
import { driftOf } from '../../../engine/diff/field-writers.ts';
import { examine } from '../../../plugin/doctor/all.ts';
import type { Facts } from '../../../plugin/doctor/check.ts';
import { renderChecks } from '../../../plugin/output/doctor.ts';
import { findingCodes } from '../../../policies/findings/codes.ts';
import { finding, objectPlace } from '../../../policies/findings/finding.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, pod, statefulSet } from '../../kit/objects.ts';
import { facts, ingester, lease, wrong } from './kit.ts';

function setNamed(name: string, overrides: object = {}) {
  return { ...statefulSet({ name }), namespace: 'mimir', updateStrategy: 'OnDelete' as const, podLabels: { name }, ...overrides };
}

const members = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];
/** A group whose pods the StatefulSet controller replaces. */
const rolled = {
  groups: [group({ rollout: { strategy: 'partition' } })],
  sets: members.map((name) => setNamed(name, { updateStrategy: 'RollingUpdate' })),
};
const managedByArgo = {
  managedFields: [{ manager: 'argocd-controller', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:replicas': {} } } }],
};
/** A member with 12 fields of which a manager wrote the last one later than the others. */
const edited = {
  metadata: {
    name: 'ingester-zone-b',
    namespace: 'mimir',
    managedFields: [
      { manager: 'argocd-controller', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:template': {} } } },
      {
        manager: 'kubectl-set',
        operation: 'Update',
        time: '2026-09-19T12:00:00Z',
        fieldsV1: {
          'f:spec': { 'f:template': { 'f:spec': Object.fromEntries('abcdefghijk'.split('').map((name) => [`f:${name}`, {}])) } },
        },
      },
      {
        manager: 'kubectl-edit',
        operation: 'Update',
        time: '2026-09-19T13:00:00Z',
        fieldsV1: { 'f:spec': { 'f:updateStrategy': { 'f:type': {} } } },
      },
    ],
  },
};
const registration = {
  isRegistered: true,
  configurations: [],
  services: [],
  problems: [],
  namespaces: [{ name: 'mimir', isOptedIn: true }],
};
const publishedOf = { namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs - 3000, leader: 'agent-1' };
const followers = adopted({ zones: ['a', { name: 'b', follows: 'a' }] });

describe('a healthy installation', () => {
  it('passes every check, each with its observation', () => {
    expect(wrong({})).toEqual([]);
    const results = examine(facts());
    expect(results.every(({ message }) => message.length > 10 && !message.endsWith('.'))).toBe(true);
    expect(results.find(({ check }) => check === 'agent')?.message).toBe(
      'agent-1 holds Lease rollout-group/rollout-group-agent, renewed 2s ago, last decision published 3s ago',
    );
  });
});

describe('doctor', () => {
  it.each<readonly [what: string, overrides: Partial<Facts>, expected: string | readonly string[]]>([
    [
      'an agent of another version',
      { leases: [lease({ version: '9.0.0' })] },
      'warn version - agent-1 has version 9.0.0, and this program has version 0.0.0-source. Install the same version',
    ],
    ['an agent without a version', { leases: [lease({ version: undefined })] }, 'SKIP version - the Lease of agent-1 names no version'],
    [
      'no agent',
      { leases: [] },
      'FAIL agent RG6001 agent not running: no Lease in namespace rollout-group. Run: kubectl get pods -n rollout-group',
    ],
    [
      'a Lease that no agent acquired in time',
      { leases: [lease({ holder: '', renewedMs: kitNowMs - 16_000 })] },
      'FAIL agent RG6001 agent not running: Lease released 16s ago in namespace rollout-group. Run: kubectl get pods -n rollout-group',
    ],
    [
      'a Lease that a leader hands over',
      { leases: [lease({ holder: '' })] },
      'warn agent - agent not running: Lease released 2s ago in namespace rollout-group; the agent stopped or changed just now. Run doctor again in a minute',
    ],
    [
      'a Lease that is not renewed',
      { leases: [lease({ renewedMs: kitNowMs - 60_000 })] },
      'FAIL agent RG6002 agent not running: Lease expired 45s ago (rollout-group/rollout-group-agent of agent-1). Run: kubectl get pods -n rollout-group',
    ],
    [
      'two agents',
      { leases: [lease(), lease({ namespace: 'mimir', holder: 'agent-2' })] },
      'warn one agent RG6004 2 Leases are renewed: rollout-group/rollout-group-agent (agent-1), mimir/rollout-group-agent (agent-2)',
    ],
    [
      'a stranger who decides',
      { published: [{ namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs, leader: 'agent-2' }] },
      'FAIL one agent RG6004 mimir/ingester is decided by agent-2, which does not hold the Lease',
    ],
    ['a silent agent', { published: [] }, 'warn decisions RG6003 mimir/ingester: the agent has published no decision'],
    [
      'a kind that is missing',
      { kinds: [{ kind: 'RolloutIntent', isServed: false, isOurs: false }] },
      'warn CRDs RG6005 RolloutIntent is not installed',
    ],
    [
      'a kind of another version',
      { kinds: [{ kind: 'RolloutGroup', isServed: true, isOurs: false }] },
      'warn CRDs RG6006 RolloutGroup is installed in another version. Run: kubectl rollout-group schema RolloutGroup -o crd | kubectl apply -f -',
    ],
    [
      'the other operator next to the agent',
      { operators: [{ namespace: 'mimir', name: 'rollout-operator', image: 'grafana/rollout-operator:v0.38.1', replicas: 1 }] },
      'FAIL operators RG6008 Deployment mimir/rollout-operator runs grafana/rollout-operator:v0.38.1 next to the agent',
    ],
    [
      'a member that is gone',
      { sets: [setNamed('ingester-zone-a'), setNamed('ingester-zone-b')] },
      'FAIL groups RG6019 mimir/ingester: StatefulSet ingester-zone-c does not exist',
    ],
    [
      'a strategy that replaces pods by itself',
      { sets: members.map((name) => setNamed(name, name.endsWith('c') ? { updateStrategy: 'RollingUpdate' } : {})) },
      'FAIL strategy RG6013 mimir/ingester-zone-c has the updateStrategy RollingUpdate: the rollout strategy onDelete needs OnDelete',
    ],
    [
      'a member without the label name',
      { sets: members.map((name) => setNamed(name, name.endsWith('c') ? { podLabels: {} } : {})) },
      'FAIL labels RG4013 the pods of mimir/ingester-zone-c have no label "name"',
    ],
    [
      'two members with one label name',
      { sets: members.map((name) => setNamed(name, { podLabels: { name: name.endsWith('c') ? 'ingester-zone-b' : name } })) },
      'FAIL labels RG6014 mimir/ingester-zone-b and mimir/ingester-zone-c share the label name=ingester-zone-b',
    ],
    [
      'a pod without an owner that has the label of a member',
      { pods: [{ ...pod(setNamed('ingester-zone-a'), 0), name: 'debug', namespace: 'mimir', labels: { name: 'ingester-zone-a' } }] },
      'warn foreign pods RG6015 Pod mimir/debug has the labels of ingester-zone-a and belongs to no owner',
    ],
    [
      'an autoscaler on a follower',
      {
        groups: [followers],
        autoscalers: [
          { namespace: 'mimir', kind: 'HorizontalPodAutoscaler', name: 'h', target: { kind: 'StatefulSet', name: 'ingester-zone-b' } },
        ],
      },
      'FAIL HPA RG6009 HorizontalPodAutoscaler mimir/h scales ingester-zone-b, whose replicas the agent writes',
    ],
    [
      'an autoscaler for each zone',
      {
        autoscalers: ['a', 'b', 'c'].map((zone) => ({
          namespace: 'mimir',
          kind: 'HorizontalPodAutoscaler',
          name: `h-${zone}`,
          target: { kind: 'StatefulSet', name: `ingester-zone-${zone}` },
        })),
      },
      'FAIL HPA RG6010 mimir/ingester is scaled by HorizontalPodAutoscaler h-a, HorizontalPodAutoscaler h-b and HorizontalPodAutoscaler h-c; each decides alone',
    ],
    [
      'a GitOps tool that names the replicas of a follower',
      { groups: [followers], statefulSets: [{ metadata: { name: 'ingester-zone-b', namespace: 'mimir', ...managedByArgo } }] },
      'FAIL GitOps RG6011 Argo CD owns spec.replicas of mimir/ingester-zone-b',
    ],
    [
      'a field that a person set on a member that Git owns',
      { sets: members.map((name) => setNamed(name, name.endsWith('b') ? { drift: driftOf(edited) } : {})), statefulSets: [edited] },
      'warn drift RG6029 mimir/ingester-zone-b: 12 fields differ from the manifests: kubectl-set wrote spec.template.spec.a of ingester-zone-b, kubectl-set wrote spec.template.spec.b of ingester-zone-b and 10 more (last write: 2026-09-19T13:00:00Z)',
    ],
    [
      'zones that request different images',
      {
        published: [
          { ...publishedOf, warnings: [{ rule: 'zone-images', outcome: 'wait', fact: 'the zones request different images: x' }] },
        ],
      },
      'warn images RG6030 mimir/ingester: the zones request different images: x',
    ],
    [
      'two budgets over one pod',
      { budgets: ['x', 'y'].map((name) => ({ namespace: 'mimir', name, selector: { matchLabels: { name: 'ingester-zone-a' } } })) },
      'FAIL PDB RG6012 x and y cover the pods of mimir/ingester-zone-a: the eviction API refuses to evict these pods',
    ],
    [
      'the ledger of a group that was renamed',
      { ledgers: [{ namespace: 'mimir', name: 'rollout-group-old' }] },
      'warn ledgers RG6016 ConfigMap mimir/rollout-group-old belongs to no group. When it has no open claims, run: kubectl delete configmap rollout-group-old -n mimir',
    ],
    [
      'the ledger of a group that is being released',
      { ledgers: [{ namespace: 'mimir', name: 'rollout-group-old', isReleased: true, goneMs: Date.parse('2026-07-30T10:00:00Z') }] },
      'warn ledgers RG6016 ConfigMap mimir/rollout-group-old belongs to no group. The agent releases the StatefulSets of the deleted group (onPolicyDeleted: release) after 2026-07-30T10:01:00Z. After that, run: kubectl delete configmap rollout-group-old -n mimir. If the ConfigMap is deleted earlier, the release stops',
    ],
    [
      'the ledger of a group that will be released',
      { ledgers: [{ namespace: 'mimir', name: 'rollout-group-old', isReleased: true }] },
      'warn ledgers RG6016 ConfigMap mimir/rollout-group-old belongs to no group. The agent releases the StatefulSets of the deleted group (onPolicyDeleted: release) one minute after the agent sees that no policy defines the group. After that, run: kubectl delete configmap rollout-group-old -n mimir. If the ConfigMap is deleted earlier, the release stops',
    ],
    [
      'a StatefulSet whose partition stays without an agent',
      { sets: [...facts().sets, setNamed('left', { updateStrategy: 'RollingUpdate', partition: 1_000_000 })] },
      `warn partition RG6023 StatefulSet mimir/left has the partition 1000000 and no group: template changes do not reach its pods. Define the group, or release the StatefulSet: kubectl patch statefulset left -n mimir --type merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`,
    ],
    [
      'pinned pods that do not come back',
      {
        published: [
          {
            namespace: 'mimir',
            group: 'ingester',
            decidedMs: kitNowMs,
            leader: 'agent-1',
            waits: [{ rule: 'pin-applied', outcome: 'wait', fact: 'a-0 came back 2 times and not at a-2' }],
          },
        ],
      },
      'FAIL pin RG6026 mimir/ingester makes no progress: a-0 came back 2 times and not at a-2. Repair the webhook, then run: kubectl rollout-group retry ingester -n mimir',
    ],
    [
      'a webhook without an answering server',
      {
        registration: {
          isRegistered: true,
          configurations: [],
          services: [],
          problems: [],
          namespaces: [{ name: 'mimir', isOptedIn: true }],
          unanswered: [{ message: 'Service a/b does not exist', isNeeded: true }],
        },
      },
      'FAIL webhooks RG6025 Service a/b does not exist',
    ],
    [
      'a StatefulSet that the agent has not yet added to the webhooks',
      { registration: { ...registration, lagging: ['mimir/ingester-zone-c'] } },
      'warn webhooks - mimir/ingester-zone-c is not covered by the webhooks yet: the agent adds new StatefulSets within seconds. Run doctor again',
    ],
    [
      'StatefulSets that the agent does not add',
      {
        registration: { ...registration, lagging: ['mimir/ingester-zone-b', 'mimir/ingester-zone-c'] },
        published: [{ ...publishedOf, zones: [{ statefulSet: 'ingester-zone-c' }], unenforced: 'the registration was changed' }],
      },
      'FAIL webhooks - mimir/ingester-zone-b, mimir/ingester-zone-c are not covered by the webhooks, because the agent did not add them. See the log of the agent',
    ],
    [
      'a group that the agent has not seen yet',
      { published: [], createdMs: new Map([['mimir/ingester', kitNowMs - 4_000]]) },
      'warn decisions - mimir/ingester: the agent has published no decision yet; the group was created 4s ago. Run doctor again in a minute',
    ],
    [
      'a group that the agent never sees',
      { published: [], createdMs: new Map([['mimir/ingester', kitNowMs - 61_000]]) },
      'warn decisions RG6003 mimir/ingester: the agent has published no decision',
    ],
    [
      'a webhook configuration that a tool deleted',
      { registration: { ...registration, problems: ['MutatingWebhookConfiguration rollout-group does not exist'] } },
      'FAIL webhooks RG6028 MutatingWebhookConfiguration rollout-group does not exist. Requests may pass unchecked; install again',
    ],
    [
      'a protection that no webhook enforces',
      {
        registration: {
          isRegistered: false,
          configurations: [],
          services: [],
          problems: [],
          namespaces: [{ name: 'mimir', isOptedIn: false }],
        },
        groups: [{ ...ingester, zones: ingester.zones.map((zone) => ({ ...zone, noEviction: true })) }],
      },
      'FAIL webhooks RG6027 mimir/ingester has noEviction: no webhook is registered, so other clients can evict its pods',
    ],
    [
      'a namespace that the agent does not watch, and not that it is silent there',
      {
        published: [],
        accounts: [{ name: 'agent/agent', rights: [], unwatched: { namespaces: ['mimir'], flag: '-namespaces=loki' } }],
      },
      [
        'FAIL namespaces RG6024 the agent does not watch namespace mimir (it runs with -namespaces=loki). Install it again with --groups-in mimir added, or choose another namespace with -n',
        'FAIL webhooks RG6024 namespace mimir has groups but the webhook does not know it (the agent runs with -namespaces=loki): nothing is enforced there',
      ],
    ],
    [
      'a setting that cannot be read',
      { findings: [finding('RG4006', objectPlace('StatefulSet mimir/ingester-zone-a'), 'the URL is none')] },
      'FAIL settings RG4006 StatefulSet mimir/ingester-zone-a: the URL is none',
    ],
    [
      'a feature gate with which a broken revision blocks its fix',
      { ...rolled, maxUnavailableGate: true },
      'warn Kubernetes RG6017 v1.36.3 counts unready pods against maxUnavailable, because the feature gate MaxUnavailableStatefulSet is on: a broken revision of mimir/ingester-zone-a, mimir/ingester-zone-b, mimir/ingester-zone-c may block its own fix',
    ],
    [
      'a first ordinal that is ignored',
      { serverVersion: 'v1.25.4', sets: members.map((name) => setNamed(name, { firstOrdinal: name.endsWith('a') ? 5 : 0 })) },
      'warn Kubernetes RG6017 v1.25.4 ignores spec.ordinals.start of mimir/ingester-zone-a unless a feature gate is set',
    ],
    ['a clock that is wrong', { serverMs: kitNowMs - 6000 }, 'warn clock RG6018 this machine is 6s ahead of the API server'],
    [
      'a clock that is very wrong',
      { serverMs: kitNowMs + 31_000, leases: [lease({ renewedMs: kitNowMs + 30_000 })] },
      'FAIL clock RG6018 this machine is 31s behind the API server',
    ],
    ['no group', { groups: [], ledgers: [] }, 'warn groups - no group exists here'],
  ])('names %s, and nothing else', (_what, overrides, expected) => {
    expect(wrong(overrides)).toEqual([expected].flat());
  });

  it('assumes the default of the version for a feature gate that it may not read, patch by patch', () => {
    const gate = { unknown: 'no permission' };
    const isWarned = (overrides: Partial<Facts>) => wrong({ ...rolled, maxUnavailableGate: gate, ...overrides }).length > 0;
    const versions = ['v1.34.9', 'v1.35.0-rc.1', 'v1.35.3+k3s1', 'v1.35.4', 'v1.36.3', 'v1.37.0'];
    expect(versions.filter((serverVersion) => isWarned({ serverVersion }))).toEqual(['v1.35.0-rc.1', 'v1.35.3+k3s1']);
    expect(wrong({ ...rolled, maxUnavailableGate: gate, serverVersion: 'v1.35.3' })[0]).toContain('is on by default: a broken');
    expect(versions.filter((serverVersion) => isWarned({ serverVersion, maxUnavailableGate: true }))).toEqual(versions.slice(0, -1));
    expect(isWarned({ serverVersion: 'v1.35.3', maxUnavailableGate: false })).toBe(false);
  });

  it.each([
    ['pinned pods, which the agent replaces', { groups: [group({ rollout: { strategy: 'pinned' } })] }],
    [
      'OrderedReady, which waits for unready pods anyway',
      { sets: rolled.sets.map((set) => ({ ...set, podManagementPolicy: 'OrderedReady' as const })) },
    ],
  ])('does not warn about the feature gate for %s', (_what, overrides) => {
    expect(wrong({ ...rolled, maxUnavailableGate: true, ...overrides }).filter((line) => line.includes('RG6017'))).toEqual([]);
  });

  it('fails if two agents decide about the same namespace', () => {
    const published = ['agent-1', 'agent-2'].map((leader, index) => ({
      namespace: 'mimir',
      group: index === 0 ? 'ingester' : 'store',
      decidedMs: kitNowMs,
      leader,
    }));
    expect(wrong({ leases: [lease(), lease({ namespace: 'mimir', holder: 'agent-2' })], published })).toEqual([
      'FAIL one agent RG6004 2 Leases are renewed: rollout-group/rollout-group-agent (agent-1), mimir/rollout-group-agent (agent-2)',
    ]);
  });

  it('only warns of two agents that decide in separate namespaces, and distinguishes their decisions', () => {
    const agents = {
      leases: [lease(), lease({ namespace: 'loki', holder: 'agent-2' })],
      published: [
        { namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs - 3000, leader: 'agent-1' },
        { namespace: 'loki', group: 'ingester', decidedMs: kitNowMs - 9000, leader: 'agent-2' },
      ],
    };
    expect(wrong(agents)).toEqual([
      'warn one agent RG6004 2 Leases are renewed: rollout-group/rollout-group-agent (agent-1), loki/rollout-group-agent (agent-2)',
    ]);
    const messages = examine(facts(agents)).map(({ message }) => message);
    expect(messages).toContain('agent-2 holds Lease loki/rollout-group-agent, renewed 2s ago, last decision published 9s ago');
  });

  it.each([
    ['took over', [lease({ acquiredMs: kitNowMs - 10_000 })]],
    ['took over, and nobody knows when', [lease({ acquiredMs: undefined })]],
    ['gave its Lease up', [lease(), lease({ namespace: 'mimir', holder: '', renewedMs: kitNowMs - 12_000 })]],
  ])('only warns of a decision from before an agent %s', (_what, leases) => {
    const published = [{ namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs - 20_000, leader: 'agent-0' }];
    expect(wrong({ leases, published })).toEqual([
      'warn one agent - mimir/ingester was last decided by agent-0, which no longer holds the Lease: the agent stopped or changed just now. Run doctor again in a minute',
    ]);
    const later = published.map((one) => ({ ...one, decidedMs: kitNowMs }));
    expect(wrong({ leases, published: later })[0]).toMatch(leases[0]?.acquiredMs === undefined ? /^warn/ : /^FAIL one agent RG6004/);
  });

  it('allows for an inaccurate clock', () => {
    expect(wrong({ serverMs: kitNowMs - 6000, clockDoubtMs: 1500 })).toEqual([]);
  });

  it('allows an autoscaler to scale the leader, and KEDA to use its autoscaler', () => {
    const target = { kind: 'StatefulSet', name: 'ingester-zone-a' };
    const autoscalers = [
      { namespace: 'mimir', kind: 'ScaledObject', name: 's', target },
      { namespace: 'mimir', kind: 'HorizontalPodAutoscaler', name: 'keda-hpa-s', target },
    ];
    expect(wrong({ groups: [ingester], autoscalers })).toEqual([]);
    expect(
      wrong({
        autoscalers: [
          { namespace: 'mimir', kind: 'HorizontalPodAutoscaler', name: 'x', target: { kind: 'Deployment', name: 'ingester-zone-a' } },
        ],
      }),
    ).toEqual([]);
  });

  it('allows Git to set the replicas of a directly scaled zone', () => {
    const statefulSets = [{ metadata: { name: 'ingester-zone-a', namespace: 'mimir', ...managedByArgo } }];
    expect(wrong({ groups: [followers], statefulSets })).toEqual([]);
  });

  it('warns of the other operator before the agent runs', () => {
    const operators = [{ namespace: 'mimir', name: 'rollout-operator', image: 'grafana/rollout-operator:v0.38.1', replicas: 1 }];
    expect(wrong({ operators, leases: [], published: [] }).filter((text) => text.includes('operators'))).toEqual([
      'warn operators RG6008 Deployment mimir/rollout-operator runs grafana/rollout-operator:v0.38.1',
    ]);
    expect(wrong({ operators: operators.map((one) => ({ ...one, replicas: 0 })) })).toEqual([]);
  });

  it('reports failing channels if a group uses them', () => {
    const failing = { namespace: 'mimir', group: 'ingester', channel: 'sre', problem: 'Slack answered channel_not_found' };
    expect(wrong({ failingChannels: [failing] })).toEqual([
      'warn channels RG6020 mimir/ingester: the channel sre fails: Slack answered channel_not_found',
    ]);
    const told = group({ notify: [{ channel: 'sre', events: ['failed'] }] });
    expect(examine(facts({ groups: [told], failingChannels: [] })).find(({ check }) => check === 'channels')?.verdict).toBe('ok');
  });

  it('reports changes of admission policies, and missing Secrets', () => {
    const problems = [{ kind: 'changed', message: 'nothing binds ValidatingAdmissionPolicy one, so it denies nothing' } as const];
    expect(wrong({ admissionPolicies: { isServed: true, problems } })).toEqual([
      'FAIL policies RG6021 nothing binds ValidatingAdmissionPolicy one, so it denies nothing',
    ]);
    const problem = 'MetricSource rollout-group/prod: Secret login does not exist in namespace rollout-group';
    expect(wrong({ secrets: { named: 2, problems: [problem], forbidden: [] } })).toEqual([`warn Secrets RG6022 ${problem}`]);
  });

  it('has a case here, or next to rights, for every code of the installation', async () => {
    const { readFileSync } = await import('node:fs');
    const text = ['./checks.test.ts', './permissions.test.ts'].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('');
    const codes = Object.keys(findingCodes).filter((code) => code.startsWith('RG6'));
    expect(codes.filter((code) => !text.includes(` ${code} `))).toEqual([]);
  });
});

describe('the summary', () => {
  it('counts every line once', () => {
    const shown = renderChecks(examine(facts({ leases: [], pods: { unknown: 'no permission to list pods' } })), {
      paint: (_style, text) => text,
      hasHints: false,
    });
    const lines = shown.trimEnd().split('\n');
    const [total = 0, ...parts] = (lines.at(-1)?.match(/\d+/g) ?? []).map(Number);
    expect([total, parts.reduce((sum, count) => sum + count, 0)]).toEqual([lines.length - 1, lines.length - 1]);
    expect(lines.at(-1)).toMatch(/^\d+ checks: \d+ ok, 1 failed, 0 warnings, 1 skipped$/);
  });
});
