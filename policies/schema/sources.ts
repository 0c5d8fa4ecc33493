// The kinds MetricSource and NotificationChannel: addresses and credentials, which only administrators write.
import { z } from 'zod';
import { duration, objectName } from './scalars.ts';

const secretKey = z
  .strictObject({ name: objectName, key: z.string().min(1).max(253) })
  .describe("A key of a Secret in the agent's namespace; it is read each time it is used.");
/** Without credentials, query and fragment: what is asked, and who asks, is never part of an address. */
const sourceUrl = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:\/[^\s@?#\\]*)?$/)
  .meta({
    title: 'address of a server',
    description: 'An http or https address without credentials and query; the path of the API is put behind it.',
  });
const usableFrom = z.strictObject({ namespaces: z.array(objectName).min(1).max(1000) }).describe('The namespaces whose groups may use it.');

/** `spec` of a MetricSource. */
export const metricSourceSpec = z
  .strictObject({
    prometheus: z
      .strictObject({
        url: sourceUrl,
        bearerToken: secretKey.optional().describe('Sent as Authorization: Bearer.'),
        basicAuth: z.strictObject({ username: secretKey, password: secretKey }).optional().describe('Sent as Authorization: Basic.'),
        ca: secretKey.optional().describe('PEM of the authorities that sign the certificate of the server, in place of the usual ones.'),
      })
      .meta({ 'x-rollout-group-at-most-one-of': ['bearerToken', 'basicAuth'] })
      .optional()
      .describe('A server with the HTTP API of Prometheus, asked at /api/v1/query.'),
    consul: z
      .strictObject({
        url: sourceUrl,
        token: secretKey.optional().describe('Sent as X-Consul-Token.'),
        ca: secretKey.optional().describe('PEM of the authorities that sign the certificate of the server, in place of the usual ones.'),
      })
      .optional()
      .describe('A Consul agent, asked at /v1/health/service/.'),
    usableFrom,
    limits: z
      .strictObject({
        timeout: duration.default('5s').describe('Until the whole answer is there, the Secrets included.'),
        maxResponseBytes: z.int().min(1024).max(16_777_216).default(1_048_576).describe('A longer answer is an error.'),
        minInterval: duration.default('15s').describe('A gate or an input that asks more often than this is not read at all.'),
      })
      .prefault({}),
  })
  .meta({ 'x-rollout-group-one-of': ['prometheus', 'consul'] });

/** As sourceUrl, with a query: that of a callback says which one it is. */
const callbackUrl = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:\/[^\s@#\\]*)?$/)
  .meta({ title: 'address of a callback', description: 'An http or https address without credentials.' });
const slackChannel = z
  .string()
  .regex(/^[CDG][A-Z0-9]{6,30}$/)
  .describe('ID of the Slack channel, such as C0123456789; its name may change, its ID does not.');
const repository = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_.-]+\/[A-Za-z0-9_.-]+$/)
  .describe('owner/name of the repository.');

/** `spec` of a NotificationChannel. */
export const notificationChannelSpec = z
  .strictObject({
    slack: z
      .strictObject({
        url: sourceUrl.optional().describe('Base of the Web API; https://slack.com/api when left out.'),
        token: secretKey.describe('Bot token with chat:write, and channels:history to find messages again.'),
        channel: slackChannel,
        ca: secretKey.optional().describe('PEM of the authorities that sign the certificate of the server, in place of the usual ones.'),
      })
      .optional()
      .describe('One message for each run, edited in place, with details in its thread.'),
    callback: z
      .strictObject({
        url: callbackUrl,
        signingKey: secretKey.optional().describe('Key of the HMAC-SHA256 signature; unsigned when left out.'),
        ca: secretKey.optional().describe('PEM of the authorities that sign the certificate of the server, in place of the usual ones.'),
      })
      .optional()
      .describe('One POST of JSON for each event.'),
    github: z
      .strictObject({
        url: sourceUrl.optional().describe('Base of the API; https://api.github.com when left out.'),
        repository,
        token: secretKey.describe('Token that may write commit statuses.'),
        ca: secretKey.optional().describe('PEM of the authorities that sign the certificate of the server, in place of the usual ones.'),
      })
      .optional()
      .describe('Status of the commit that is rolled out.'),
    gitlab: z
      .strictObject({
        url: sourceUrl.optional().describe('Base of the API; https://gitlab.com/api/v4 when left out.'),
        project: z.string().min(1).max(200).describe('ID of the project, or its path.'),
        token: secretKey.describe('Token that may write commit statuses.'),
        ca: secretKey.optional().describe('PEM of the authorities that sign the certificate of the server, in place of the usual ones.'),
      })
      .optional()
      .describe('Status of the commit that is rolled out.'),
    usableFrom,
  })
  .meta({ 'x-rollout-group-one-of': ['slack', 'callback', 'github', 'gitlab'] });
