// The version of this build, set by the bundler.

/** Version of the plugin, as in package.json. */
export const version: string = process.env['ROLLOUT_GROUP_VERSION'] ?? '0.0.0-source';
