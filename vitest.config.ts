import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Safe because no test mocks a module or keeps state between files; it makes the inner loop several times faster.
    pool: 'threads',
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
  },
});
