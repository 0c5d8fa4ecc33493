// Plays every plan of every workload, or of those that are named: `node scripts/run.mjs test/simulation/sieve-all.ts [WORKLOAD ...]`

import { judgePlan, recordWorkload } from './sieve/judge.ts';
import { plansOf, sievePatterns } from './sieve/sieve.ts';
import { sieveWorkloads } from './sieve/workloads.ts';

const named = process.argv.slice(2);
let failures = 0;
for (const workload of sieveWorkloads.filter(({ name }) => named.length === 0 || named.includes(name))) {
  const recording = await recordWorkload(workload);
  const plans = plansOf(recording);
  const startedAt = process.cpuUsage().user;
  for (const pattern of sievePatterns) {
    const ofPattern = plans.filter((plan) => plan.pattern === pattern);
    let failed = 0;
    for (const plan of ofPattern) {
      const failure = await judgePlan(workload, recording, plan);
      if (failure === undefined) continue;
      failed += 1;
      process.stdout.write(`  ${failure.id}: ${failure.message.slice(0, 300)}\n    ${plan.name}\n    ${JSON.stringify(plan.fault)}\n`);
    }
    failures += failed;
    process.stdout.write(`${workload.name.padEnd(24)} ${pattern.padEnd(14)} ${ofPattern.length} plans, ${failed} failed\n`);
  }
  const seconds = (process.cpuUsage().user - startedAt) / 1e6;
  process.stdout.write(`${workload.name.padEnd(24)} ${plans.length} plans, ${seconds.toFixed(1)} s of processor time\n`);
}
process.exitCode = failures > 0 ? 1 : 0;
