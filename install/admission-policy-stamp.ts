// The admission policy that verifies the requester of intents and exceptions while the webhook is not registered.
import { apiGroup, apiVersion } from '../policies/schema/kinds.ts';
import { boundPolicy } from './admission-policy-objects.ts';
import { saysSomethingNew } from './conditions.ts';
import type { InstallObject, InstallOptions } from './object.ts';

/** The field of the spec. */
const stamp = 'requestedBy';

/** The spec says something else than before, beside who asked: whoever changes what is asked for asks for it, as at /admission/stamp. */
const isAsked = [
  "request.operation == 'CREATE'",
  `!variables.spec.all(key, key == '${stamp}' || (key in variables.oldSpec && variables.oldSpec[key] == variables.spec[key]))`,
  `!variables.oldSpec.all(key, key == '${stamp}' || key in variables.spec)`,
].join(' || ');

/** Of groups the webhook leaves out what has no room; of fewer groups only less can be approved. They are nearly always the same list, which costs least. */
const areOwnGroups =
  '!has(variables.stamp.groups) || variables.stamp.groups == variables.groups || variables.stamp.groups.all(group, group in variables.groups)';

const advice = `leave spec.${stamp} out, or write null where it stands: the webhook /admission/stamp fills it in, and what nobody has stamped is said by nobody`;

/**
 * The policy and its binding, for every namespace. Policies are asked after the mutating webhooks, so that it sees what the webhook wrote; where the
 * webhook is not registered, what a user writes there must be true, and what says nothing stays unsaid. Nobody is spared: the agent writes none of
 * these objects, and whoever impersonates somebody is that person for the API server.
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
        // The time is not looked at. It is what the clock of a webhook says, or its writer in their own name, and CEL has no clock to hold it against but
        // that of a creation: a bound there would refuse every intent, a pause in an emergency too, while the clock of a webhook is ahead, and bind no
        // update. The agent believes no time that lies ahead of its own clock.
        {
          expression: `!variables.isAsked || variables.stamp == null || (variables.stamp.user == request.userInfo.username && (${areOwnGroups}))`,
          messageExpression: `'spec.${stamp} does not say who asks, which is ' + request.userInfo.username + ' with no more than their groups; ${advice}'`,
          reason: 'Forbidden',
        },
        // A manifest without the field is applied again after the webhook that stamped it is gone: nobody is believed then. Whoever may write that may
        // change the whole word without a stamp.
        {
          expression: 'variables.isAsked || variables.stamp == null || variables.stamp == variables.oldStamp',
          message: `spec.${stamp} stays as it is, or goes, while the object asks for nothing else`,
          reason: 'Forbidden',
        },
      ],
    },
  });
}

function stampIn(spec: string): string {
  return `'${stamp}' in ${spec} ? ${spec}.${stamp} : null`;
}
