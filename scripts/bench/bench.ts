// Measures the promised figures, prints each with its bar (the promised maximum) and its floor, and fails if a figure exceeds its bar.
// `--slack N` multiplies the bars, for busy machines. `--offline` skips everything that needs a control plane. `--agent` measures only the
// agent. `--webhook [SECONDS]` measures only the webhook, for this time. `--long` loads the webhook for ten minutes, and rolls 1,000 pods
// with `onDelete` and with `pinned`. `--large [STRATEGY]` measures only that rollout, with both strategies or with one. `--json FILE` writes
// how many figures passed and failed.
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { type Figure, figureTable, isKept } from './figure.ts';
import { offlineFigures } from './offline.ts';
import { simulationFigures } from './simulation.ts';
import { usualLoad, webhookFigures } from './webhook.ts';
import { partWord, runPart } from './webhook-process.ts';

const words = process.argv.slice(2);
const slack = words.includes('--slack') ? Number(words[words.indexOf('--slack') + 1]) : 1;
if (!(slack > 0)) throw new Error('--slack needs a number above 0');

function say(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Returns the figures of the agent on a control plane, or why they were skipped. */
async function agentFigures(): Promise<readonly Figure[] | string> {
  const leftOut = ['--offline', '--webhook'].find((word) => words.includes(word));
  if (leftOut !== undefined) return leftOut;
  const { measureAgent, measureLargeRun } = await import('./agent.ts');
  if (words.includes('--large')) {
    const strategy = words[words.indexOf('--large') + 1];
    return await measureLargeRun(progress, strategy?.startsWith('--') ? undefined : strategy);
  }
  const usual = await measureAgent(progress);
  if (!words.includes('--long') || typeof usual === 'string') return usual;
  const large = await measureLargeRun(progress);
  return typeof large === 'string' ? large : [...usual, ...large];
}

/** Returns the figures of the webhook, which needs only the loopback interface. */
async function loadedFigures(): Promise<readonly Figure[]> {
  const usual = usualLoad(words.includes('--long'));
  const seconds = Number(words[words.indexOf('--webhook') + 1]);
  return await webhookFigures(words.includes('--webhook') && seconds > 0 ? { ...usual, seconds } : usual, progress);
}

/** Measures once more if a figure exceeds its bar, because another process may have used the machine. A defect exceeds it twice. */
async function measured(measure: () => Promise<readonly Figure[]>): Promise<readonly Figure[]> {
  const first = await measure();
  const missed = first.filter((figure) => !isKept(figure, slack));
  if (missed.length === 0) return first;
  progress(`measured again, because these exceeded their bars: ${missed.map(({ what }) => what).join('; ')}`);
  return await measure();
}

async function bench(): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const show = (more: readonly Figure[]): void => {
    if (more.length > 0) say([...(figures.length > 0 ? [''] : []), ...figureTable(more, slack)]);
    figures.push(...more);
  };
  const [isAgentOnly, isWebhookOnly] = [words.includes('--agent') || words.includes('--large'), words.includes('--webhook')];
  if (!isAgentOnly && !isWebhookOnly) show(await measured(async () => [...(await offlineFigures()), ...(await simulationFigures())]));
  if (!isAgentOnly) show(await measured(loadedFigures));
  const agent = await agentFigures();
  if (typeof agent === 'string') say(['', `LEFT OUT: every figure of the agent (${agent})`]);
  else show(agent);
  say([`node ${process.version}, ${cpus().length} processors${slack === 1 ? '' : `, bars multiplied by ${slack}`}`]);
  return figures;
}

if (words[0] === partWord) await runPart(words[1] ?? '');
else {
  const figures = await bench();
  const failed = figures.filter((figure) => !isKept(figure, slack)).length;
  const report = words[words.indexOf('--json') + 1];
  if (words.includes('--json') && report !== undefined) {
    writeFileSync(report, `${JSON.stringify({ passed: figures.filter(({ bar }) => bar !== undefined).length - failed, failed })}\n`);
  }
  process.exit(failed > 0 ? 1 : 0);
}
