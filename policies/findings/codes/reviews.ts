// Defines the codes RG8xxx: the effects of a change between two revisions.
export const reviewCodes = {
  RG8001: {
    title: 'The change loosens a policy',
    severity: 'warning',
    explanation:
      'With the policies of the head, a request passes that the policies of the base block, or it passes earlier, or more pods are replaced at once. The message names the change and the first decision.',
    hint: 'check that the change is meant, and that a policy test covers the decision',
  },
  RG8002: {
    title: 'The change tightens a policy',
    severity: 'notice',
    explanation:
      'With the policies of the head, a request is blocked that the policies of the base permit, or it passes later, or fewer pods are replaced at once.',
  },
  RG8003: {
    title: 'The change of a definition changes no asked decision',
    severity: 'notice',
    explanation: 'The definition of a group or policy differs, but both sides answer every question of the review in the same way.',
  },
  RG8004: {
    title: 'The rollout is denied or blocked',
    severity: 'error',
    explanation: 'A rule denies a part of the change of the manifests, or blocks the rollout until a person acts.',
    hint: 'run review -o table to see the plan',
  },
  RG8005: {
    title: 'A policy test fails',
    severity: 'error',
    explanation: 'A case of a PolicyTest of the head does not get the expected decision.',
    hint: 'change the policy or the expectation of the case',
  },
} as const;
