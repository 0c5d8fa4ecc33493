// The suites that need a control plane: apart from the others, because they take minutes and their executables take longer.
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

// biome-ignore lint/style/noDefaultExport: vitest reads it there.
export default defineConfig({
  root: resolve('.'),
  test: {
    include: ['test/**/*.cluster.ts'],
    globalSetup: ['test/control-plane/setup.ts'],
    // A process for each file, so that whatever ends a file's process ends the control planes that it left.
    pool: 'forks',
    // A control plane holds 520 MiB and waits most of the time: two side by side keep two cores busy, and more would slow what is timed.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
  },
});
