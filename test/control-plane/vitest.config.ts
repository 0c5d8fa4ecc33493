// The suites that need a control plane: apart from the others, because they take minutes and their executables take longer.
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { longestFirst } from '../kit/longest-first.ts';

// biome-ignore lint/style/noDefaultExport: vitest reads it there.
export default defineConfig({
  root: resolve('.'),
  test: {
    include: ['test/**/*.cluster.ts'],
    globalSetup: ['test/control-plane/setup.ts'],
    // A process for each file, so that whatever ends a file's process ends the control planes that it left.
    pool: 'forks',
    // A control plane holds 520 MiB and waits most of the time: three side by side keep two cores busy, and more would slow what is timed.
    maxWorkers: 3,
    sequence: {
      sequencer: longestFirst([
        // Each waits out two minutes for what somebody who died may still have under way.
        'test/webhook/race-kill.cluster.ts',
        'test/agent/partition.cluster.ts',
        'test/agent/crash.cluster.ts',
        'test/agent/degraded.cluster.ts',
        // A minute of grace, or of a certificate.
        'test/agent/release/release.cluster.ts',
        'test/agent/whole-run.cluster.ts',
        'test/webhook/outage-expiry.cluster.ts',
        // The rest of a minute or more.
        'test/webhook/bypass.cluster.ts',
        'test/agent/rollout.cluster.ts',
        'test/agent/gates.cluster.ts',
        'test/webhook/outage.cluster.ts',
        'test/webhook/outage-drain.cluster.ts',
        'test/simulation/sieve.cluster.ts',
        'test/agent/pinned.cluster.ts',
        'test/agent/adopted/adopted.cluster.ts',
      ]),
    },
    testTimeout: 120_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
  },
});
