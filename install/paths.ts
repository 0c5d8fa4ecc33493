// The paths of our webhook endpoints.
export const endpointPaths = {
  enforce: '/admission/enforce',
  enforceOthers: '/admission/enforce-others',
  validate: '/admission/validate',
  stamp: '/admission/stamp',
  pinPod: '/admission/pin-pod',
} as const;
