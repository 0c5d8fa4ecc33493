// Which engines replace pods in this version.

/** A group that names another engine waits with the rule engine-unavailable, and lint says so. */
export const availableEngines: readonly string[] = ['onDelete'];
