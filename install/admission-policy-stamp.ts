// The admission policy that verifies the requester of intents and exceptions while the webhook is not registered.
import { apiGroup, apiVersion } from '../policies/schema/kinds.ts';
import { boundPolicy } from './admission-policy-objects.ts';
import { saysSomethingNew } from './conditions.ts';
import type { InstallObject, InstallOptions } from './object.ts';

/** The field of the spec that names the requester. */
const stamp = 'requestedBy';

/**
 * True if the spec differs in a field other than the requester. The user who changes a request becomes its requester, as at
 * /admission/stamp.
 */
const isAsked = [
  "request.operation == 'CREATE'",
  `!variables.spec.all(key, key == '${stamp}' || (key in variables.oldSpec && variables.oldSpec[key] == variables.spec[key]))`,
  `!variables.oldSpec.all(key, key == '${stamp}' || key in variables.spec)`,
].join(' || ');

/**
 * The webhook drops groups that exceed its limit, and fewer groups can only approve less. The lists are nearly always equal, so equality is
 * tested first.
 */
const areOwnGroups =
  '!has(variables.stamp.groups) || variables.stamp.groups == variables.groups || variables.stamp.groups.all(group, group in variables.groups)';

const advice = `leave spec.${stamp} out or set it to null: the webhook /admission/stamp fills it in, and without the webhook the requester is unverified`;

/**
 * Returns the policy and its binding for every namespace. Admission policies run after the mutating webhooks, so this policy sees the
 * requester that the webhook wrote. Without the webhook, a requester that a user writes must be the user, and an absent requester stays
 * absent. No user is exempt: the agent writes none of these objects, and for the API server an impersonating user is the impersonated user.
 */
export function stampPolicyOf(options: InstallOptions): readonly InstallObject[] {
  return boundPolicy(options, {
    base: 'rollout-group-requested-by',
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: [apiGroup],
            apiVersions: [apiVersion.slice(apiGroup.length + 1)],
            resources: ['rolloutexceptions', 'rolloutintents'],
            operations: ['CREATE', 'UPDATE'],
            scope: 'Namespaced',
          },
        ],
        matchPolicy: 'Equivalent',
      },
      matchConditions: [saysSomethingNew],
      variables: [
        { name: 'spec', expression: 'dyn(object.spec)' },
        { name: 'oldSpec', expression: "request.operation == 'CREATE' ? dyn({}) : dyn(oldObject.spec)" },
        { name: 'stamp', expression: stampIn('variables.spec') },
        { name: 'oldStamp', expression: stampIn('variables.oldSpec') },
        { name: 'groups', expression: 'has(request.userInfo.groups) ? dyn(request.userInfo.groups) : dyn([])' },
        { name: 'isAsked', expression: isAsked },
      ],
      validations: [
        // The policy does not check the time. The time comes from the clock of the webhook, or from the user. CEL has only the creation
        // timestamp to compare it with. A bound would deny every intent, even an emergency pause, while the clock of the webhook is ahead,
        // and would not cover updates. The agent ignores times ahead of its clock.
        {
          expression: `!variables.isAsked || variables.stamp == null || (variables.stamp.user == request.userInfo.username && (${areOwnGroups}))`,
          messageExpression: `'spec.${stamp} is not the requester ' + request.userInfo.username + ' with a subset of the groups of this user; ${advice}'`,
          reason: 'Forbidden',
        },
        // Covers a manifest without the field that is applied again after the webhook is gone: the request then has no verified requester.
        // A user who may remove the field may also change the whole request without a requester.
        {
          expression: 'variables.isAsked || variables.stamp == null || variables.stamp == variables.oldStamp',
          message: `spec.${stamp} must stay unchanged or be removed if the rest of the spec is unchanged`,
          reason: 'Forbidden',
        },
      ],
    },
  });
}

function stampIn(spec: string): string {
  return `'${stamp}' in ${spec} ? ${spec}.${stamp} : null`;
}
