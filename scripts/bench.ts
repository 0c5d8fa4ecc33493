// Measures the figures that are promised, prints each beside its bar and its floor, and judges them.
// `--slack N` multiplies the bars, for busy machines; `--offline` leaves out what needs a control plane, `--agent` all else.
import { cpus } from 'node:os';
import { type Figure, figureTable, isKept } from './bench-figure.ts';
import { offlineFigures } from './bench-offline.ts';
import { simulationFigures } from './bench-simulation.ts';

const words = process.argv.slice(2);
const slack = words.includes('--slack') ? Number(words[words.indexOf('--slack') + 1]) : 1;
if (!(slack > 0)) throw new Error('--slack needs a number above 0');

function say(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** Those of the agent on a control plane, or why they were left out. */
async function agentFigures(): Promise<readonly Figure[] | string> {
  if (words.includes('--offline')) return '--offline';
  const { measureAgent } = await import('./bench-agent.ts');
  return await measureAgent((line) => process.stderr.write(`${line}\n`));
}

const offline = words.includes('--agent') ? [] : [...offlineFigures(), ...(await simulationFigures())];
if (offline.length > 0) say(figureTable(offline, slack));
const agent = await agentFigures();
if (typeof agent === 'string') say(['', `LEFT OUT: every figure of the agent, for ${agent}`]);
else say(['', ...figureTable(agent, slack)]);
say([`node ${process.version}, ${cpus().length} processors${slack === 1 ? '' : `, bars multiplied by ${slack}`}`]);
const figures = typeof agent === 'string' ? offline : [...offline, ...agent];
process.exit(figures.every((figure) => isKept(figure, slack)) ? 0 : 1);
