// Secret keys that metric sources and notification channels in the agent's namespace refer to.
import type { LoadedDocument } from '../load.ts';
import { channelSecretKeys, type SecretKey } from './channel.ts';
import { sourceSecretKeys } from './metric-source.ts';

/** Returns each key once, in the order of the fields. Objects in other namespaces are never used, so their keys are left out. */
export function secretKeysOf(document: LoadedDocument, agentNamespace: string): readonly SecretKey[] {
  if ((document.value.metadata.namespace ?? agentNamespace) !== agentNamespace) return [];
  const keys = named(document);
  return [...new Map(keys.map((one) => [`${one.name}/${one.key}`, one])).values()];
}

function named(document: LoadedDocument): readonly SecretKey[] {
  if (document.kind === 'MetricSource') return sourceSecretKeys(document.value.spec);
  return document.kind === 'NotificationChannel' ? channelSecretKeys(document.value.spec) : [];
}
