import { describe, expect, it } from 'vitest';
import { installation } from '../../install/installation.ts';
import { maxMembers, membersNamed, narrowed } from '../../install/narrowing.ts';
import type { InstallOptions } from '../../install/object.ts';
import { registrationProblems } from '../../install/registered.ts';
import type { Member } from '../../install/scope.ts';
import { group, optionsOf, scopeOf } from './given.ts';

type Row = Readonly<Record<string, unknown>>;

function configurations(changes: Partial<InstallOptions> = {}) {
  return installation(optionsOf(changes))
    .filter(({ kind }) => kind.endsWith('WebhookConfiguration'))
    .map(({ kind, metadata: { name }, webhooks }) => ({ kind, name, webhooks: webhooks as readonly Row[] }));
}

function rows(changes: Partial<InstallOptions> = {}): readonly Row[] {
  return configurations(changes).find(({ kind }) => kind.startsWith('Validating'))?.webhooks ?? [];
}

const member = (statefulSet: string): Member => ({ namespace: 'mimir', statefulSet });
const conditionsIn = (row: Row | undefined) =>
  (row?.['matchConditions'] ?? []) as readonly { readonly name: string; readonly expression: string }[];
const rowNamed = (all: readonly Row[], name: string) => all.find((row) => row['name'] === `${name}.enforce.rollout-group.dev`);

describe('rows that are narrowed to protected objects', () => {
  const now = narrowed(rows(), [member('store.b'), member('ingester-zone-a')]);

  it('receive requests for members only, next to rows that allow all others without an answer', () => {
    const list = "['mimir/ingester-zone-a', 'mimir/store.b']";
    const podOwner = "(request.namespace + '/' + request.name.substring(0, request.name.lastIndexOf('-')))";
    for (const [name, subject] of [
      ['statefulset-update', "(request.namespace + '/' + request.name)"],
      ['statefulset-scale', "(request.namespace + '/' + request.name)"],
      ['statefulset-delete', "(request.namespace + '/' + oldObject.metadata.name)"],
      ['pod-eviction', podOwner],
    ] as const) {
      const [own, others, installed] = [rowNamed(now, name), rowNamed(now, `${name}-of-others`), rowNamed(rows(), name)];
      expect(own).toMatchObject({ failurePolicy: 'Fail', rules: installed?.['rules'] });
      expect(others).toMatchObject({
        failurePolicy: 'Ignore',
        rules: installed?.['rules'],
        clientConfig: {
          service: { name: 'rollout-group-agent', namespace: 'rollout-group', path: '/admission/enforce-others', port: 443 },
        },
      });
      expect(conditionsIn(own)).toEqual([...conditionsIn(installed), { name: 'is-a-member-now', expression: `${subject} in ${list}` }]);
      expect(conditionsIn(others)).toEqual([
        ...conditionsIn(installed),
        { name: 'is-no-member-now', expression: `!(${subject} in ${list})` },
      ]);
    }
    expect(now).toHaveLength(rows().length + 4);
    expect(now.filter(({ failurePolicy }) => failurePolicy === 'Ignore')).toHaveLength(
      rows().filter(({ failurePolicy }) => failurePolicy === 'Ignore').length + 4,
    );
  });

  it('are the same after they are narrowed again, and follow the members', () => {
    expect(narrowed(now, [member('ingester-zone-a'), member('store.b')])).toEqual(now);
    expect(membersNamed(now)).toEqual([member('ingester-zone-a'), member('store.b')]);
    const fewer = narrowed(now, [member('store.b')]);
    expect(membersNamed(fewer)).toEqual([member('store.b')]);
    expect(fewer).toHaveLength(now.length);
    const none = narrowed(now, []);
    expect(conditionsIn(rowNamed(none, 'statefulset-scale')).at(-1)).toEqual({ name: 'is-a-member-now', expression: 'false' });
    expect(membersNamed(none)).toEqual([]);
  });

  it('stay as installed if there are too many, or if the installation has narrowed them', () => {
    const many = Array.from({ length: maxMembers + 1 }, (_, index) => member(`set-${index}`));
    expect(narrowed(now, many)).toEqual(rows());
    const forGood = rows({ scope: scopeOf(group), isMembersOnly: true });
    expect(narrowed(forGood, [member('ingester-zone-a')])).toEqual(forGood);
  });
});

describe('the row for pinned pods', () => {
  const installed = configurations().find(({ name }) => name === '0-rollout-group-pinned')?.webhooks ?? [];

  it('is narrowed only to groups of that strategy', () => {
    const now = narrowed(installed, [member('b'), member('a')]);
    expect(now).toHaveLength(1);
    expect(conditionsIn(now[0])).toEqual([
      ...conditionsIn(installed[0]),
      {
        name: 'is-a-member-now',
        expression:
          "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller && (request.namespace + '/' + owner.name) in ['mimir/a', 'mimir/b'])",
      },
    ]);
    expect([membersNamed(now), narrowed(now, [member('a'), member('b')])]).toEqual([[member('a'), member('b')], now]);
    expect(conditionsIn(narrowed(now, [])[0]).at(-1)?.expression).toBe('false');
    const named = configurations().map((one) => (one.name === '0-rollout-group-pinned' ? { ...one, webhooks: now } : one));
    expect(registrationProblems(named, { namespace: 'rollout-group', pinned: [member('a')] })).toEqual([]);
    expect(registrationProblems(named, { namespace: 'rollout-group', pinned: [member('c')] })[0]).toMatch(/^mimir\/c is not covered/);
  });

  it('is unchanged if an installation has narrowed it', () => {
    const scope = scopeOf(group.replace('strategy: onDelete', 'strategy: pinned'));
    const forGood = configurations({ scope, isMembersOnly: true });
    const rowsOf = forGood.find(({ name }) => name === '0-rollout-group-pinned')?.webhooks ?? [];
    expect(narrowed(rowsOf, [member('other')])).toEqual(rowsOf);
    const pinned = [member('ingester-zone-a')];
    expect(registrationProblems(forGood, { namespace: 'rollout-group', members: pinned, pinned })).toEqual([]);
  });
});

describe('the registration', () => {
  const question = { namespace: 'rollout-group', members: [member('ingester-zone-a')] };
  type Change = (row: Row) => Row;
  const changed = (name: string, change: Change) =>
    configurations().map((one) => ({
      ...one,
      webhooks: one.webhooks.map((row) => (row['name'] === `${name}.rollout-group.dev` ? change(row) : row)),
    }));
  const withCondition =
    (condition: object): Change =>
    (row) => ({ ...row, matchConditions: [...conditionsIn(row), condition] });

  it('equals the installed one, with the defaults of the API server, the fields of the agent and the options', () => {
    const defaults = configurations().map((one) => ({
      ...one,
      webhooks: one.webhooks.map((row) => ({
        namespaceSelector: {},
        objectSelector: {},
        ...row,
        clientConfig: { ...(row['clientConfig'] as Row), caBundle: 'Y2E=' },
      })),
    }));
    expect(registrationProblems(defaults, question)).toEqual([]);
    const narrow = defaults.map((one) =>
      one.kind.startsWith('Val') ? { ...one, webhooks: narrowed(one.webhooks, question.members) } : one,
    );
    expect(registrationProblems(narrow, question)).toEqual([]);
    const only = configurations({ scope: scopeOf(group), isMembersOnly: true });
    expect(registrationProblems(only, question)).toEqual([]);
    expect(registrationProblems(configurations({ namespace: 'ops' }), { namespace: 'ops' })).toEqual([]);
  });

  it.each<[string, string, Change]>([
    ['failurePolicy', 'statefulset-scale.enforce', (row) => ({ ...row, failurePolicy: 'Ignore' })],
    ['namespaceSelector', 'statefulset-scale.enforce', (row) => ({ ...row, namespaceSelector: { matchLabels: { nobody: 'yes' } } })],
    ['objectSelector', 'pod-eviction.enforce', (row) => ({ ...row, objectSelector: { matchLabels: { nobody: 'yes' } } })],
    ['rules', 'statefulset-update.enforce', (row) => ({ ...row, rules: [] })],
    ['matchPolicy', 'statefulset-update.enforce', (row) => ({ ...row, matchPolicy: 'Exact' })],
    ['timeoutSeconds', 'pod-delete.enforce', (row) => ({ ...row, timeoutSeconds: 30 })],
    ['sideEffects', 'pod-delete.enforce', (row) => ({ ...row, sideEffects: 'None' })],
    ['clientConfig', 'stamp', (row) => ({ ...row, clientConfig: { service: { name: 'other', namespace: 'x', path: '/', port: 443 } } })],
    ['matchCondition never was added', 'statefulset-scale.enforce', withCondition({ name: 'never', expression: 'false' })],
    [
      'matchCondition is-a-member-now was added',
      'statefulset-scale.enforce',
      withCondition({ name: 'is-a-member-now', expression: "false && 'mimir/ingester-zone-a' != ''" }),
    ],
    ['matchCondition is-a-member was added', 'statefulset-scale.enforce', withCondition({ name: 'is-a-member', expression: 'false' })],
    ['mimir/ingester-zone-a is not covered', 'statefulset-scale.enforce', (row) => narrowed([row], [member('other')])[0] ?? row],
    [
      'matchCondition removes-replicas was changed',
      'statefulset-scale.enforce',
      (row) => ({ ...row, matchConditions: conditionsIn(row).slice(0, 1).concat({ name: 'removes-replicas', expression: 'false' }) }),
    ],
  ])('reports that %s', (what, name, change) => {
    const problems = registrationProblems(changed(name, change), question);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(what);
    expect(problems[0]).toContain(`${name}.rollout-group.dev`);
  });

  it('names the missing part', () => {
    expect(registrationProblems([], question)).toEqual([
      'ValidatingWebhookConfiguration rollout-group does not exist',
      'MutatingWebhookConfiguration rollout-group does not exist',
    ]);
    const pinned = ['a', 'b', 'c', 'd'].map(member);
    expect(registrationProblems([], { ...question, pinned }, { isPinOnly: true })).toEqual([
      'MutatingWebhookConfiguration 0-rollout-group-pinned does not exist, so no pod of mimir/a, mimir/b, mimir/c and others is created at its pinned revision',
    ]);
    const without = configurations().map((one) => ({ ...one, webhooks: one.webhooks.slice(1) }));
    expect(registrationProblems(without, question)).toEqual([
      'ValidatingWebhookConfiguration rollout-group has no webhook statefulset-update.enforce.rollout-group.dev',
      'MutatingWebhookConfiguration rollout-group has no webhook stamp.rollout-group.dev',
      'MutatingWebhookConfiguration 0-rollout-group-pinned has no webhook pinned.rollout-group.dev',
    ]);
  });
});
