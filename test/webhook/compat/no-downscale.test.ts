// What no-downscale answers when it was not asked, or came to no end; what it answers otherwise, the scenarios say.
import { describe, expect, it } from 'vitest';
import { noDownscale } from '../../../webhook/compat/no-downscale.ts';
import { rescale, statefulSet, update } from './scenarios/given.ts';
import { readText, reviewText } from './scenarios/play.ts';
import type { ScenarioRequest } from './scenarios/scenario.ts';
import { scenarioWorld } from './scenarios/world.ts';

const keep = { 'grafana.com/no-downscale': 'true' };

function onFailure(labels: Readonly<Record<string, string>>, request: ScenarioRequest) {
  const world = scenarioWorld({ state: { 'statefulsets.apps': [statefulSet('zone-a', { labels })] } });
  return noDownscale(world.env).onFailure(readText(reviewText(world, request)), 'too much is going on');
}

describe('no-downscale without a decision', () => {
  it('denies a protected object in the request, with its own reason', () => {
    const answer = onFailure(keep, update('zone-a', 2));
    expect(answer.allowed).toBe(false);
    expect(answer.message).toContain('grafana.com/no-downscale=true');
  });

  it('allows an unprotected object in the request', () => {
    expect(onFailure({}, update('zone-a', 2))).toEqual({ allowed: true });
    expect(onFailure(keep, update('zone-a', 4))).toEqual({ allowed: true });
    expect(onFailure(keep, rescale('zone-a', 3, 4))).toEqual({ allowed: true });
  });

  it('denies a smaller Scale, because its protection is unknown', () => {
    const answer = onFailure({}, rescale('zone-a', 3, 2));
    expect(answer.allowed).toBe(false);
    expect(answer.message).toContain('too much is going on');
  });

  it('allows a Scale for which it would have read no object', () => {
    expect(onFailure(keep, rescale('web', 3, 2, { resource: 'replicationcontrollers' }))).toEqual({
      allowed: true,
      warnings: ['too much is going on'],
    });
  });
});
