// The kinds MetricSource and NotificationChannel: addresses and credentials, which only administrators write.
import { z } from 'zod';
import { duration, objectName } from './scalars.ts';

const secretKey = z
  .strictObject({ name: objectName, namespace: objectName, key: z.string().min(1).max(253) })
  .describe('A key of a Secret.');
const httpsUrl = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/[^\s@/]+(?:\/[^\s@]*)?$/)
  .describe('An http or https address without user information.');
const usableFrom = z.strictObject({ namespaces: z.array(objectName).min(1).max(1000) }).describe('The namespaces whose groups may use it.');

/** `spec` of a MetricSource. */
export const metricSourceSpec = z
  .strictObject({
    prometheus: z
      .strictObject({
        url: httpsUrl,
        bearerToken: secretKey.optional(),
        basicAuth: z.strictObject({ username: secretKey, password: secretKey }).optional(),
        ca: secretKey.optional(),
      })
      .optional(),
    consul: z.strictObject({ url: httpsUrl, token: secretKey.optional(), ca: secretKey.optional() }).optional(),
    usableFrom,
    limits: z
      .strictObject({
        timeout: duration.default('5s'),
        maxResponseBytes: z.int().min(1024).max(16_777_216).default(1_048_576),
        minInterval: duration.default('15s'),
      })
      .prefault({}),
  })
  .meta({ 'x-rollout-group-one-of': ['prometheus', 'consul'] });

/** `spec` of a NotificationChannel. */
export const notificationChannelSpec = z
  .strictObject({
    slack: z.strictObject({ token: secretKey, channel: z.string().min(1).max(80) }).optional(),
    callback: z.strictObject({ url: httpsUrl, signingKey: secretKey.optional() }).optional(),
    github: z.strictObject({ url: httpsUrl.optional(), repository: z.string().min(3).max(200), token: secretKey }).optional(),
    gitlab: z.strictObject({ url: httpsUrl.optional(), project: z.string().min(1).max(200), token: secretKey }).optional(),
    usableFrom,
  })
  .meta({ 'x-rollout-group-one-of': ['slack', 'callback', 'github', 'gitlab'] });
