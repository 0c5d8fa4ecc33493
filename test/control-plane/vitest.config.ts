// Configures the suites on a control plane. They run apart from the other suites because they take minutes.
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { longestFirst } from '../kit/longest-first.ts';

// biome-ignore lint/style/noDefaultExport: vitest requires it.
export default defineConfig({
  root: resolve('.'),
  test: {
    include: ['test/**/*.cluster.ts'],
    globalSetup: ['test/control-plane/setup.ts'],
    // Each file has a process. If the process ends, the control planes of the file end too.
    pool: 'forks',
    // A control plane uses 520 MiB and is mostly idle. Three of them use two cores; more would slow the measured times.
    maxWorkers: 3,
    sequence: {
      sequencer: longestFirst([
        // Each of these suites waits two minutes for requests of a process that died.
        'test/webhook/race-kill.cluster.ts',
        'test/agent/partition.cluster.ts',
        'test/agent/crash.cluster.ts',
        'test/agent/degraded.cluster.ts',
        // These suites wait a minute for a grace period or a certificate.
        'test/agent/release/release.cluster.ts',
        'test/agent/whole-run.cluster.ts',
        'test/webhook/outage-expiry.cluster.ts',
        // These suites wait a minute or more for other reasons.
        'test/deploy/chart.cluster.ts',
        'test/webhook/bypass.cluster.ts',
        'test/agent/rollout.cluster.ts',
        'test/agent/gates.cluster.ts',
        'test/webhook/outage.cluster.ts',
        'test/webhook/outage-drain.cluster.ts',
        'test/simulation/sieve.cluster.ts',
        'test/agent/pinned.cluster.ts',
        'test/agent/adopted/adopted.cluster.ts',
        'test/deploy/monitoring.cluster.ts',
        'test/plugin/surface.cluster.ts',
      ]),
    },
    testTimeout: 120_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
    // A failure may not happen again, so its message shows the values and not only `[ Array(1) ]`.
    chaiConfig: { truncateThreshold: 4_000 },
  },
});
