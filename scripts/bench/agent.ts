// Measures the agent on a separate control plane: how fast it acts, how long a rollout takes, and what watching many pods costs.
import { largeRunStrategies } from '../../test/agent/large-run.ts';
import { findBinaries } from '../../test/control-plane/binaries.ts';
import { type ControlPlane, startControlPlane } from '../../test/control-plane/control-plane.ts';
import type { Figure } from './figure.ts';
import { largeRunFigures } from './large-run.ts';
import { reviewingFigures, watchingFigures } from './memory.ts';
import { reactionFigures, rollingFigures } from './rollout.ts';

/** Measures in less than four minutes. Returns the reason if no control plane is available. */
export function measureAgent(progress: (line: string) => void): Promise<readonly Figure[] | string> {
  return measure(parts, progress);
}

/**
 * Measures a run of 1,000 pods with each strategy on a separate control plane, or only with the strategy `only`. Returns the reason if no
 * control plane is available. Rejects if the strategy does not exist.
 */
export async function measureLargeRun(progress: (line: string) => void, only?: string): Promise<readonly Figure[] | string> {
  const strategies = largeRunStrategies.filter((strategy) => only === undefined || strategy === only);
  if (strategies.length === 0) throw new Error(`--large ${only}: the strategies are ${largeRunStrategies.join(' and ')}`);
  const figures: Figure[] = [];
  for (const strategy of strategies) {
    const what = `a run over 1,000 pods by ${strategy}`;
    const found = await measure([{ what, measure: (controlPlane) => largeRunFigures(controlPlane, strategy) }], progress);
    if (typeof found === 'string') return found;
    figures.push(...found);
  }
  return figures;
}

async function measure(wanted: readonly Part[], progress: (line: string) => void): Promise<readonly Figure[] | string> {
  const binaries = await findBinaries(progress);
  if (binaries.kind === 'missing') return binaries.reason;
  const controlPlane = await startControlPlane({ binaries: binaries.folder });
  // Ctrl-C must stop the control plane too.
  const leave = (): void => void controlPlane.stop().finally(() => process.exit(1));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, leave);
  try {
    const figures: Figure[] = [];
    for (const part of wanted) {
      const startedAt = Date.now();
      figures.push(...(await part.measure(controlPlane)));
      progress(`measured ${part.what} in ${((Date.now() - startedAt) / 1000).toFixed(0)} s`);
    }
    return figures;
  } finally {
    await controlPlane.stop();
  }
}

interface Part {
  readonly what: string;
  readonly measure: (controlPlane: ControlPlane) => Promise<readonly Figure[]>;
}

/**
 * The measurements of memory are last, because each pod makes the audit log longer and the others read that log. The very last one installs
 * the kinds of the project.
 */
const parts: readonly Part[] = [
  { what: 'the reaction to a pod that becomes Ready', measure: reactionFigures },
  { what: 'the time of a rollout', measure: rollingFigures },
  { what: 'memory and processor with many pods', measure: watchingFigures },
  { what: 'memory of webhooks under load', measure: reviewingFigures },
];
