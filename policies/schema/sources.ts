// Defines the kinds MetricSource and NotificationChannel: addresses and credentials, which only administrators write.
import * as z from 'zod';
import { optional } from 'zod';
import { duration, objectName, optionalFields } from './scalars.ts';

const secretKey = z
  .strictObject({ name: objectName, key: z.string().min(1).max(253) })
  .describe('Key of a Secret in the namespace of the agent. The agent reads it at each use.');
/** An address without credentials, query and fragment. */
const sourceUrl = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:\/[^\s@?#\\]*)?$/)
  .meta({
    title: 'address of a server',
    description: 'http or https address without credentials and query. The agent appends the API path.',
  });
const caCertificates = optional(secretKey).describe(
  'Key of a Secret in the namespace of the agent, with the CA certificates of the server in PEM. They replace the default CA certificates.',
);
const usableFrom = z
  .strictObject({ namespaces: z.array(objectName).min(1).max(1000) })
  .describe('Namespaces whose groups and policies may use this object.');

export const metricSourceSpec = z
  .strictObject({
    prometheus: z
      .strictObject({
        url: sourceUrl,
        bearerToken: secretKey.optional().describe('Sent as `Authorization: Bearer`.'),
        basicAuth: optionalFields({ username: secretKey, password: secretKey }).describe('Sent as `Authorization: Basic`.'),
        ca: caCertificates,
      })
      .meta({ 'x-rollout-group-at-most-one-of': ['bearerToken', 'basicAuth'] })
      .optional()
      .describe('Server with the Prometheus HTTP API; queried at `/api/v1/query`.'),
    consul: optionalFields({
      url: sourceUrl,
      token: secretKey.optional().describe('Sent as `X-Consul-Token`.'),
      ca: caCertificates,
    }).describe('Consul agent; queried at `/v1/health/service/`.'),
    usableFrom,
    limits: z
      .strictObject({
        timeout: duration.default('5s').describe('Deadline of one query, from reading this object and its Secrets to the complete answer.'),
        maxResponseBytes: z
          .int()
          .min(1024)
          .max(16_777_216)
          .default(1_048_576)
          .describe('Maximum size of an answer; a larger answer is an error.'),
        minInterval: duration
          .default('15s')
          .describe(
            'Shortest interval that a gate or metric may have. The agent does not read a gate or metric with a shorter interval. The interval of a metric follows from its `maxAge`.',
          ),
      })
      .prefault({}),
  })
  .meta({ 'x-rollout-group-one-of': ['prometheus', 'consul'] });

/** An address like `sourceUrl`, but with an optional query. */
const callbackUrl = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:\/[^\s@#\\]*)?$/)
  .meta({ title: 'address of a callback', description: 'http or https address without credentials.' });
const slackChannel = z
  .string()
  .regex(/^[CDG][A-Z0-9]{6,30}$/)
  .describe('ID of the Slack channel, such as C0123456789; not the name of the channel.');
const repository = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_.-]+\/[A-Za-z0-9_.-]+$/)
  .describe('Repository as `owner/name`.');

export const notificationChannelSpec = z
  .strictObject({
    slack: optionalFields({
      url: sourceUrl.optional().describe('Base URL of the Web API. The default is https://slack.com/api.'),
      token: secretKey.describe('Bot token with the scope `chat:write`, and with `channels:history` to find earlier messages.'),
      channel: slackChannel,
      ca: caCertificates,
    }).describe('One message per run, edited at each event, with details in its thread.'),
    callback: optionalFields({
      url: callbackUrl,
      signingKey: secretKey.optional().describe('Key of the HMAC-SHA256 signature. Without it the request is unsigned.'),
      ca: caCertificates,
    }).describe('One POST request with JSON per event.'),
    github: optionalFields({
      url: sourceUrl.optional().describe('Base URL of the API. The default is https://api.github.com.'),
      repository,
      token: secretKey.describe('Token with permission to write commit statuses.'),
      ca: caCertificates,
    }).describe('Writes the status of the rolled-out commit.'),
    gitlab: optionalFields({
      url: sourceUrl.optional().describe('Base URL of the API. The default is https://gitlab.com/api/v4.'),
      project: z.string().min(1).max(200).describe('ID or path of the project.'),
      token: secretKey.describe('Token with permission to write commit statuses.'),
      ca: caCertificates,
    }).describe('Writes the status of the rolled-out commit.'),
    usableFrom,
  })
  .meta({ 'x-rollout-group-one-of': ['slack', 'callback', 'github', 'gitlab'] });
