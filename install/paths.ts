// Where the webhooks of our own endpoints answer.
export const endpointPaths = {
  enforce: '/admission/enforce',
  enforceOthers: '/admission/enforce-others',
  validate: '/admission/validate',
  stamp: '/admission/stamp',
  pinPod: '/admission/pin-pod',
} as const;
