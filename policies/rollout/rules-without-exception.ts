// The rules of the engine that no exception lets pass: what cannot be seen or announced, and what people end in another way.

/** By id. The other rules of the engine, and all of policies, yield to an exception in force. */
export const rulesWithoutException: readonly string[] = [
  'announced',
  'ledger-full',
  'paused',
  'pods-in-flight',
  'progress-deadline',
  'protected',
  'protection-kept',
  'replica-source',
  'revision-known',
  'run-deadline',
  'run-failed',
  'undone',
  'view-complete',
  'wave-available',
];
