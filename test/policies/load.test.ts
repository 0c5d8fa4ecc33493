import { describe, expect, it } from 'vitest';
import { lintPolicies, resolveFiles } from '../../policies/lint/lint.ts';
import { loadPolicies } from '../../policies/load.ts';
import { parseDocuments } from '../../policies/yaml/document.ts';
import { yamlLimits } from '../../policies/yaml/scan.ts';

const group = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester }
spec:
  members:
    zones: [{ name: a, statefulSet: ingester-zone-a }]
  rollout: { strategy: onDelete }
`;

function load(text: string, name = 'policy.yaml') {
  const { documents, manifests, unusable, findings } = loadPolicies([{ name, text }]);
  return {
    documents: documents.map((one) => `${one.kind} ${one.namespace}/${one.name}`),
    manifests: manifests.map((one) => `${one.apiVersion} ${one.kind} ${one.namespace}/${one.name}`),
    unusable: unusable.map((one) => `${one.kind} ${one.namespace}/${one.name}`),
    findings: findings.map((one) => `${one.line}:${one.column} ${one.code} ${one.message}`),
  };
}

describe('loading', () => {
  it('puts objects without a namespace into the default one, with their definitions', () => {
    const set = 'apiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: ingester-zone-a }\n';
    const other = group.replace('{ name: ingester }', '{ name: other, namespace: loki }').replace('ingester-zone-a', 'b');
    const { loaded, resolution } = resolveFiles([{ name: 'a.yaml', text: `${group}---\n${other}---\n${set}` }], {
      objectNamespace: 'mimir',
    });
    expect(resolution.bundle.groups.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual(['loki/other', 'mimir/ingester']);
    expect(loaded.manifests).toMatchObject([{ namespace: 'mimir', value: { metadata: { name: 'ingester-zone-a', namespace: 'mimir' } } }]);
  });

  it('names the command that applies a saved plan', () => {
    const text = '{"kind":"SavedPlan","apiVersion":"rollout-group.dev/v1alpha1","metadata":{}}';
    expect(loadPolicies([{ name: 'a.json', text }]).findings).toMatchObject([
      { code: 'RG2001', hint: 'apply a saved plan without -f: kubectl rollout-group apply FILE' },
    ]);
  });

  it('fills in defaults and the namespace', () => {
    const { documents } = loadPolicies([{ name: 'a.yaml', text: group }], { namespace: 'mimir' });
    expect(
      documents.map(({ kind, namespace, name, value }) => ({
        kind,
        namespace,
        name,
        rollout: 'rollout' in value.spec && value.spec.rollout,
      })),
    ).toMatchInlineSnapshot(`
      [
        {
          "kind": "RolloutGroup",
          "name": "ingester",
          "namespace": "mimir",
          "rollout": {
            "deadlines": {},
            "historyLimit": 10,
            "maxUnavailable": 1,
            "minInterval": "0s",
            "onFailure": "pause",
            "onPolicyDeleted": "hold",
            "order": "descending",
            "replaceUnready": {
              "after": "5m",
              "when": "any",
            },
            "rotateBy": "evict",
            "skipOnRollback": true,
            "strategy": "onDelete",
          },
        },
      ]
    `);
  });

  it('returns other Kubernetes objects unchanged, also in a List', () => {
    const text = `apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: ConfigMap, metadata: { name: one, namespace: mimir }, data: { on: yes, mode: 0644 } }
  - { apiVersion: apps/v1, kind: StatefulSet, metadata: { name: two } }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: three }
`;
    expect(load(text)).toMatchInlineSnapshot(`
      {
        "documents": [],
        "findings": [],
        "manifests": [
          "v1 ConfigMap mimir/one",
          "apps/v1 StatefulSet default/two",
          "policy/v1 PodDisruptionBudget default/three",
        ],
        "unusable": [],
      }
    `);
    const [first] = loadPolicies([{ name: 'list.yaml', text }]).manifests;
    expect([first?.value['data'], first?.place(['data', 'mode']).column]).toEqual([{ on: 'yes', mode: 644 }, 106]);
  });

  it('reads policies from a List, with each error at its place', () => {
    const items = ['apiVersion: v1', 'kind: List', 'items:'];
    const item = (name: string, strategy: string) =>
      `  - apiVersion: rollout-group.dev/v1alpha1
    kind: RolloutGroup
    metadata: { name: ${name}, namespace: mimir }
    spec: { members: { zones: [{ name: a, statefulSet: ${name} }] }, rollout: { strategy: ${strategy} } }`;
    const nested = '  - { apiVersion: v1, kind: List, items: [{ apiVersion: rollout-group.dev/v1alpha1, kind: RolloutPolicy }, 7] }';
    expect(load(`${[...items, item('one', 'onDelete'), item('two', 'on'), nested].join('\n')}\n`)).toMatchInlineSnapshot(`
      {
        "documents": [],
        "findings": [
          "11:87 RG1009 on is a boolean for readers of YAML 1.1 and text for others",
          "11:87 RG2006 spec.rollout.strategy is "on"; it takes pinned, partition or onDelete",
          "12:43 RG2004 metadata is missing",
          "12:43 RG2004 spec is missing",
          "12:108 RG1012 the document is not a mapping with apiVersion and kind",
        ],
        "manifests": [],
        "unusable": [
          "RolloutGroup mimir/one",
          "RolloutGroup mimir/two",
          "RolloutPolicy default/",
        ],
      }
    `);
  });

  it('expands aliases and merge keys of other Kubernetes objects', () => {
    const text = `apiVersion: v1
kind: ConfigMap
metadata: &meta { name: one, labels: &labels { app: x, tier: y } }
data: { <<: *labels, app: z, copy: *meta }
`;
    const { manifests, findings } = loadPolicies([{ name: 'a.yaml', text }]);
    expect(findings).toEqual([]);
    expect(manifests[0]?.value['data']).toEqual({ app: 'z', tier: 'y', copy: { name: 'one', labels: { app: 'x', tier: 'y' } } });
  });

  it('reports all errors of a document in one run, and does not use it', () => {
    const text = group.replace('ingester-zone-a', 'Zone_A, follow: b').replace('onDelete', 'ondelete, minInterval: 5, order: no');
    expect(load(text)).toMatchInlineSnapshot(`
      {
        "documents": [],
        "findings": [
          "6:37 RG2007 spec.members.zones[0].statefulSet is "Zone_A", which is not an object name",
          "6:45 RG2003 spec.members.zones[0] has no field follow",
          "7:24 RG2006 spec.rollout.strategy is "ondelete"; it takes pinned, partition or onDelete",
          "7:47 RG2005 spec.rollout.minInterval is 5; it takes a duration",
          "7:57 RG1009 no is a boolean for readers of YAML 1.1 and text for others",
          "7:57 RG2006 spec.rollout.order is "no"; it takes descending or ascending",
        ],
        "manifests": [],
        "unusable": [
          "RolloutGroup default/ingester",
        ],
      }
    `);
  });

  it('uses the other documents of a file with a broken one', () => {
    expect(load(`${group}---\nkind: [\n---\n${group.replace('ingester', 'other')}`)).toMatchInlineSnapshot(`
      {
        "documents": [
          "RolloutGroup default/ingester",
          "RolloutGroup default/other",
        ],
        "findings": [
          "10:1 RG1004 flow sequence in block collection must be sufficiently indented and end with a ]",
        ],
        "manifests": [],
        "unusable": [],
      }
    `);
  });

  it('does not depend on the order of files', () => {
    const files = ['b.yaml', 'a.yaml', 'c.yaml'].map((name) => ({ name, text: name === 'c.yaml' ? 'x: 1\n' : group }));
    const [one, other] = [loadPolicies(files), loadPolicies([...files].reverse())];
    expect(one.documents.map((document) => document.file)).toEqual(['a.yaml', 'b.yaml']);
    expect([other.documents.map((document) => document.file), other.findings]).toEqual([
      one.documents.map((document) => document.file),
      one.findings,
    ]);
  });

  it('has no finding for an empty file, a comment, or empty documents', () => {
    for (const text of ['', '# nothing\n', '---\n---\n# nothing\n...\n']) {
      expect(load(text)).toEqual({ documents: [], manifests: [], unusable: [], findings: [] });
    }
  });

  it('reads byte order marks and carriage returns, and counts lines as an editor does', () => {
    const text = `\uFEFF${group.replace('onDelete', 'ondelete')}`.replaceAll('\n', '\r\n');
    expect(load(text).findings).toEqual(['7:24 RG2006 spec.rollout.strategy is "ondelete"; it takes pinned, partition or onDelete']);
  });

  it('rejects a key without a value', () => {
    expect(load(`${group}  scaling:\n`).findings).toEqual(['8:11 RG2005 spec.scaling is empty; it takes fields']);
  });
});

describe('the place of a value', () => {
  const [document] = parseDocuments('a.yaml', group).documents;

  it.each([
    [[], 'value', '1:1'],
    [['metadata', 'name'], 'value', '3:19-27'],
    [['metadata', 'name'], 'key', '3:13-17'],
    [['spec', 'members', 'zones', 0], 'value', '6:13-54'],
    [['spec', 'rollout'], 'key', '7:3-10'],
    [['spec', 'rollout', 'waves', 2], 'value', '7:3-10'],
    [['spec', 'members', 'zones', 7, 'name'], 'value', '6:5-10'],
  ] as const)('%j (%s) is %s', (path, part, expected) => {
    const place = document?.place(path, part);
    expect(`${place?.line}:${place?.column}${place?.endColumn === undefined ? '' : `-${place.endColumn}`}`).toBe(expected);
  });

  it('is unknown if the value is not written', () => {
    expect(document?.find(['spec', 'rollout', 'waves'])).toBeUndefined();
  });
});

/** Work that grows faster than its input does not end in this time on any machine. */
const patienceMs = 60_000;

describe('the limits', () => {
  const codes = (text: string) => parseDocuments('a.yaml', text).findings.map((one) => one.code);

  it('apply to the size in bytes of UTF-8', () => {
    const fitting = `# ${'é'.repeat(yamlLimits.bytes / 2 - 1)}`;
    expect([codes(fitting), codes(`${fitting}x`), codes(`# ${'😀'.repeat(yamlLimits.bytes / 4)}`)]).toEqual([[], ['RG1001'], ['RG1001']]);
  });

  it('apply to documents, depth and aliases, and accept exactly as many', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const aliases = (count: number) => `a: &a 1\nb: [${'*a,'.repeat(count)}]\n`;
    expect([codes('---\na: 1\n'.repeat(yamlLimits.documents)), codes('---\na: 1\n'.repeat(yamlLimits.documents + 1))]).toEqual([
      [],
      ['RG1002'],
    ]);
    expect([codes(nested(yamlLimits.depth)), codes(nested(yamlLimits.depth + 1))]).toEqual([[], ['RG1003']]);
    expect([codes(aliases(yamlLimits.aliases)), codes(aliases(yamlLimits.aliases + 1))]).toEqual([[], ['RG1007']]);
  });

  it('end an alias inside of itself', () => {
    const [document] = parseDocuments('a.yaml', 'a: &a [*a]\n').documents;
    expect(document?.errors.map((one) => [one.code, one.line, one.column])).toEqual([['RG1007', 1, 8]]);
  });

  it(
    'leave a mapping of many keys readable',
    () => {
      const text = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join('\n');
      expect(Object.keys(parseDocuments('a.yaml', text).documents[0]?.value ?? {})).toHaveLength(20_000);
    },
    patienceMs,
  );
});

describe('values', () => {
  it('keep every key as a normal key, and never change prototypes', () => {
    const [document] = parseDocuments('a.yaml', '{ __proto__: { polluted: 1 }, constructor: 2, toString: 3 }').documents;
    expect(Object.entries(document?.value ?? {})).toEqual([
      ['__proto__', { polluted: 1 }],
      ['constructor', 2],
      ['toString', 3],
    ]);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  it.each([
    ['quoted words and plain booleans', 'a: ["yes", \'no\', "on", true, false]', []],
    ['words of YAML 1.1 as values and keys', 'y: [Yes, OFF]', ['RG1009', 'RG1009', 'RG1009']],
    ['longer words', 'a: [yesterday, only, offer, nothing]', []],
    ['decimal numbers', 'a: [0, 10, -3, 0.5, 1e3]', []],
    ['quoted numbers', 'a: ["010", "1_000"]', []],
    ['numbers that readers disagree on', 'a: [010, 0o17, 0b11, 1_000, 12:30, .inf, .nan]', Array(7).fill('RG1013')],
    ['quoted operators', '"!": [1]\n"!=": [1, 2]', []],
    ['plain operators', 'a: { !: [1] }\nb:\n  !!: [1]\nc:\n  !==: [1, 2]', ['RG1010', 'RG1010', 'RG1010']],
    ['tags that say what is there anyway', 'a: !!str 5', []],
  ])('of %s are judged as policies require', (_, text, expected) => {
    const [document] = parseDocuments('a.yaml', text).documents;
    expect([document?.errors, document?.dialect.map((one) => one.code)]).toEqual([[], expected]);
  });
});

const printed = (metadata: string, tail = '') => `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata:
  name: ingester
  namespace: mimir
${metadata}spec:
  members: { zones: [{ name: a, statefulSet: ingester-zone-a }] }
  rollout: { strategy: partition }
${tail}`;

const codesOf = (text: string) =>
  lintPolicies([{ name: 'get.yaml', text }])
    .findings.filter((one) => one.severity !== 'notice')
    .map((one) => one.message);

describe('the output of kubectl', () => {
  it('is a policy, and the fields of the API server are no finding', () => {
    const metadata = `  uid: f5b0
  resourceVersion: "17"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [example.com/keep]
  ownerReferences: [{ apiVersion: v1, kind: ConfigMap, name: x, uid: z1 }]
  managedFields: [{ manager: kubectl, fieldsV1: { "f:spec": {} } }]
`;
    expect(codesOf(printed(metadata, 'status: { phase: Done }\n'))).toEqual([]);
  });

  it('is a finding in a place that only a user could have written', () => {
    expect(codesOf(printed('  lables: {}\n'))).toEqual(['metadata has no field lables']);
    const policy =
      'apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: { name: p }\nspec: { targets: { all: true }, limits: { minReplicas: 2 } }\nstatus: {}\n';
    expect(codesOf(policy)).toEqual(['the document has no field status']);
  });
});
