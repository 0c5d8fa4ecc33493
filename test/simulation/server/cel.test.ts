import { describe, expect, it } from 'vitest';
import { compatWebhooksOf } from '../../../install/compat.ts';
import { everywhere } from '../../../install/scope.ts';
import { webhooksOf } from '../../../install/webhooks.ts';
import { compileCel } from '../../../scripts/soak/webhooks/cel.ts';

const scope = { request: { name: 'a-0', operation: 'CREATE' }, object: { labels: { x: '1' }, items: [{ n: 1 }, { n: 2 }], count: 3 } };

describe('an expression', () => {
  it.each([
    ["request.operation == 'CREATE' && object.count > 2", true],
    ["request.name.matches('^.+-[0-9]+$')", true],
    ["!request.name.startsWith('a')", false],
    ['(has(object.labels) ? object.labels : {}) != {}', true],
    ["has(object.labels) && 'x' in object.labels", true],
    ['object.items.exists(one, one.n == 2)', true],
    ['object.items.map(one, one.n) == [1, 2]', true],
    ["object.labels.exists(key, object.labels[key] == '2')", false],
    ["request.operation in ['UPDATE', 'DELETE']", false],
    ["(request.name + '/' + request.operation) in ['a-0/CREATE']", true],
    ['has(object.absent) || 1 > 0', true],
    // An error counts only if the other side does not decide.
    ["object.absent == 'x' || 1 > 0", true],
    ["object.absent == 'x' && request.name == 'b'", false],
    ["object.absent == 'x'", undefined],
  ])('%s is %s', (expression, expected) => {
    expect(compileCel(expression)(scope)).toBe(expected);
  });

  it('fails to compile if its syntax is unknown', () => {
    expect(() => compileCel('object.size()')).toThrow('unknown CEL');
    expect(() => compileCel('a == ')).toThrow('unknown CEL');
    expect(() => compileCel('a ~ b')).toThrow('unknown CEL');
  });

  it('compiles in every match condition of an installation', () => {
    const options = { namespace: 'rollout-group', image: 'x', replicas: 2, hasCompat: true, hasNamespace: false, isEnforced: true };
    const members = [{ namespace: 'mimir', statefulSet: 'ingester.a' }];
    for (const isMembersOnly of [false, true]) {
      const given = { ...options, scope: { ...everywhere, members }, isMembersOnly, hasAdmissionPolicies: false };
      const webhooks = [...webhooksOf(given), ...compatWebhooksOf(given)].flatMap(
        (object) => object['webhooks'] as readonly { matchConditions?: readonly { expression: string }[] }[],
      );
      for (const { matchConditions = [] } of webhooks) for (const { expression } of matchConditions) compileCel(expression);
    }
  });
});
