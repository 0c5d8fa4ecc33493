// Plays one scenario: its world is made, its review is asked as bytes, and what came of it is told.

import { mergePatch } from '../../../../simulation/server/json.ts';
import { noDownscale } from '../../../../webhook/compat/no-downscale.ts';
import { prepareDownscale } from '../../../../webhook/compat/prepare/downscale.ts';
import { defaultLimits } from '../../../../webhook/config.ts';
import { decide } from '../../../../webhook/review/decide.ts';
import { readReview } from '../../../../webhook/review/read-review.ts';
import type { Answer, Endpoint, Review } from '../../../../webhook/review/review.ts';
import type { Json, ScenarioRequest, WebhookScenario } from './scenario.ts';
import { namespace, scenarioWorld, type World } from './world.ts';

/** May let time pass in the world, until what the endpoint needs is there. */
type MakeEndpoint = (world: World, settings: Json) => Endpoint | Promise<Endpoint>;

/** By path. */
const makers: Readonly<Record<string, MakeEndpoint>> = {
  '/admission/no-downscale': ({ env }) => noDownscale(env),
  '/admission/prepare-downscale': ({ env }, settings) => prepareDownscale(env, { clusterDomain: 'cluster.local.', ...settings }),
};

export const reviewUid = '705ab4f5-6393-11e8-b7cc-42010a800002';

async function makeEndpoint(world: World, { endpoint, settings = {} }: Pick<WebhookScenario, 'endpoint' | 'settings'>): Promise<Endpoint> {
  const make = makers[endpoint];
  if (make === undefined) throw new Error(`${endpoint} is made nowhere: name its maker here`);
  return await make(world, settings);
}

/** The AdmissionReview that an API server would send, as JSON. */
export function reviewText(world: World, request: ScenarioRequest): string {
  const { apiVersion = 'admission.k8s.io/v1', resource, subresource, name, operation = 'UPDATE', dryRun, user = 'jane' } = request;
  const stored = world.get(`${resource}.apps`, name);
  const oldObject = request.oldObject === undefined ? stored : request.oldObject;
  const object = request.patch === undefined ? request.object : mergePatch(oldObject ?? {}, request.patch);
  return JSON.stringify({
    apiVersion,
    kind: 'AdmissionReview',
    request: {
      uid: reviewUid,
      kind: { group: 'apps', version: 'v1', kind: 'StatefulSet' },
      resource: { group: 'apps', version: 'v1', resource },
      ...(subresource !== undefined && { subResource: subresource }),
      name,
      namespace: request.namespace ?? namespace,
      operation,
      userInfo: { username: user },
      oldObject,
      object,
      ...(dryRun !== undefined && { dryRun }),
      options: null,
    },
  });
}

export function readText(text: string): Review {
  const read = readReview(Buffer.from(text), defaultLimits);
  if ('refused' in read) throw new Error(`the review was refused: ${read.refused.message}`);
  return read.review;
}

interface Played {
  readonly world: World;
  readonly answer: Answer;
}

/** By the handler alone. */
export async function playHandler(scenario: WebhookScenario): Promise<Played> {
  const world = scenarioWorld(scenario);
  const endpoint = await makeEndpoint(world, scenario);
  const review = await begun(world, endpoint, scenario);
  const before = world.calls.length;
  const answer = await world.virtual.finish(endpoint.handle(review, world.newCall()));
  return { world: since(world, before), answer };
}

/** As bytes in and bytes out: what an API server reads. */
export async function playText(
  scenario: WebhookScenario,
): Promise<{ readonly world: World; readonly response: Json; readonly apiVersion: unknown }> {
  const world = scenarioWorld(scenario);
  const endpoint = await makeEndpoint(world, scenario);
  const review = await begun(world, endpoint, scenario);
  const before = world.calls.length;
  const decided = decide(review, { endpoint, call: world.newCall(), isOverloaded: false, log: world.env.log });
  const { text } = await world.virtual.finish(decided);
  const { apiVersion, response } = JSON.parse(text) as { readonly apiVersion: unknown; readonly response: Json };
  return { world: since(world, before), response, apiVersion };
}

/** The review, with whatever is in hand as far as it comes without time passing. */
async function begun(world: World, endpoint: Endpoint, { inHand, request }: WebhookScenario): Promise<Review> {
  if (inHand !== undefined) {
    void endpoint.handle(readText(reviewText(world, inHand)), world.newCall());
    await world.virtual.settle();
  }
  return readText(reviewText(world, request));
}

/** Without the calls that the endpoint made before it was asked. */
function since(world: World, count: number): World {
  return { ...world, calls: world.calls.slice(count) };
}
