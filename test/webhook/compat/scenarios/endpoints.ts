// How the endpoints of scenarios are made.
import { noDownscale } from '../../../../webhook/compat/no-downscale.ts';
import { prepareDownscale } from '../../../../webhook/compat/prepare/downscale.ts';
import type { Endpoint } from '../../../../webhook/review/review.ts';
import type { Json } from './scenario.ts';
import type { World } from './world.ts';

/** May let time pass in the world, until what the endpoint needs is there. */
type MakeEndpoint = (world: World, settings: Json) => Endpoint | Promise<Endpoint>;

/** By path. */
export const makers: Readonly<Record<string, MakeEndpoint>> = {
  '/admission/no-downscale': ({ env }) => noDownscale(env),
  '/admission/prepare-downscale': ({ env }, settings) => prepareDownscale(env, { clusterDomain: 'cluster.local.', ...settings }),
};
