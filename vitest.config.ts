import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/kit/longest-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Sharing threads between files is safe, because no test mocks a module or keeps state. It makes repeated local runs several times
    // faster.
    pool: 'threads',
    isolate: false,
    sequence: {
      sequencer: longestFirst([
        'test/simulation/defects/defects.test.ts',
        'test/simulation/sieve.test.ts',
        'test/engine/property/property.test.ts',
        'test/simulation/replay.test.ts',
        'test/acceptance/real-manifests.test.ts',
        'test/simulation/run.test.ts',
        'test/webhook/review/fuzz.test.ts',
      ]),
    },
    testTimeout: 120_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
  },
});
