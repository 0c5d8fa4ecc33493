// Whether the Secrets that a metric source or a notification channel names are there yet: a warning for whoever writes it, and never a refusal.
import { namedSecretProblem, type SecretReader, secretReader } from '../../cluster/request/secret.ts';
import type { SecretKey } from '../../policies/integrations/channel.ts';
import { secretKeysOf } from '../../policies/integrations/secret-keys.ts';
import type { WebhookEnv } from '../env.ts';
import { boundedText } from '../review/bounded-text.ts';
import { type Call, leftMs, type Review } from '../review/review.ts';
import { documentOf } from './validate-object.ts';

/** API servers ask for no more in one warning, and show more of them then. */
const longestWarning = 120;

/** All reads together, in milliseconds: nobody waits for a warning. */
const longestLookMs = 1_000;

const consequences: Readonly<Record<string, string>> = {
  MetricSource: 'gates wait for it',
  NotificationChannel: 'nobody is told',
};

/**
 * A line for each Secret or key that is not there. Tools apply objects in any order, so that it may come later. Nothing is said of what the account may not
 * read, nor of what could not be read in time; of what is read nothing is told but whether it is there.
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
    // The gate, or the channel, says itself why it cannot read it.
    return undefined;
  }
}
