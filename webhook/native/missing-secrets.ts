// Warns if a Secret that a metric source or a notification channel names does not exist yet. Never denies.
import { namedSecretProblem, type SecretReader, secretReader } from '../../cluster/request/secret.ts';
import type { SecretKey } from '../../policies/integrations/channel.ts';
import { secretKeysOf } from '../../policies/integrations/secret-keys.ts';
import type { WebhookEnv } from '../env.ts';
import { boundedText } from '../review/bounded-text.ts';
import { type Call, leftMs, type Review } from '../review/review.ts';
import { documentOf } from './validate-object.ts';

/** API servers ask for warnings of at most this length, and then show more of them. */
const longestWarning = 120;

/** Longest time for all reads, in milliseconds: a warning is not worth a wait. */
const longestLookMs = 1_000;

const consequences: Readonly<Record<string, string>> = {
  MetricSource: 'gates wait for it',
  NotificationChannel: 'notifications are not sent',
};

/**
 * Returns one line for each missing Secret or key. Tools apply objects in any order, so it may follow later. Secrets that the account may
 * not read, or that could not be read in time, are skipped. Nothing of their content is shown.
 */
export async function missingSecrets(
  env: Pick<WebhookEnv, 'clock' | 'kubernetes'>,
  { object = {}, namespace }: Pick<Review, 'object' | 'namespace'>,
  { agentNamespace }: { readonly agentNamespace: string },
  call: Call,
): Promise<readonly string[]> {
  if (namespace !== agentNamespace) return [];
  const document = documentOf(object);
  const consequence = document === undefined ? undefined : consequences[document.kind];
  if (document === undefined || consequence === undefined) return [];
  const endsMs = env.clock.monotonicMs() + Math.min(longestLookMs, leftMs(call, env.clock.monotonicMs()) / 2);
  const timeoutMs = (): number => Math.max(1, Math.floor(endsMs - env.clock.monotonicMs()));
  const read = secretReader(env, { namespace, site: 'validate.secret', timeoutMs });
  const keys = secretKeysOf(document, agentNamespace);
  const problems = await Promise.all(keys.map((key) => problemOf(key, read, namespace)));
  const lines = problems.flatMap((problem) => (problem === undefined ? [] : [boundedText(`${problem}: ${consequence}`, longestWarning)]));
  return [...new Set(lines)];
}

async function problemOf(key: SecretKey, read: SecretReader, namespace: string): Promise<string | undefined> {
  try {
    const found = await read(key);
    return 'problem' in found ? namedSecretProblem(key, found.problem, namespace) : undefined;
  } catch {
    // The gate or the channel reports why it cannot read it.
    return undefined;
  }
}
