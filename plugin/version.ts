// Exports the version of this build, which the bundler sets.

export const version: string = process.env['ROLLOUT_GROUP_VERSION'] ?? '0.0.0-source';
