// Server-side apply on the model of the API server. applies.cluster.ts compares the same sequences with the real one.
import { describe, expect, it } from 'vitest';
import { modelOfApplies, played, sequences } from './applies.ts';

describe('server-side apply', () => {
  it.each(Object.entries(sequences))('answers %s', async (_what, steps) => {
    expect(await played(modelOfApplies(), steps)).toMatchSnapshot();
  });
});
