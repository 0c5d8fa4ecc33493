// Measures the webhook under load on loopback, and a bare Node HTTPS server under the same load for comparison.
import { type Figure, median, percentile } from './figure.ts';
import { slopeOf } from './webhook-memory.ts';
import { type Load, type Measured, measureLoad } from './webhook-process.ts';
import { evictionLatencyMs } from './webhook-world.ts';

interface WebhookLoad {
  /** Duration of the load. The loads of evictions and of the bare server take a third of it, at most a minute. */
  readonly seconds: number;
  /** True if one of a hundred requests has 3 MiB, and resident memory is judged too. In seconds, resident memory shows nothing. */
  readonly isLong: boolean;
}

/** Returns the default load: ten minutes with `--long`. */
export function usualLoad(isLong: boolean): WebhookLoad {
  return { seconds: isLong ? 600 : 30, isLong };
}

const rate = 200;
const evictionRate = 50;
const maxSeconds = 60;

/** Measures three loads, one after the other. Rejects if a process of a load does not end. */
export async function webhookFigures({ seconds, isLong }: WebhookLoad, progress: (line: string) => void): Promise<readonly Figure[]> {
  const short = Math.min(maxSeconds, seconds / 3);
  const reviews: Omit<Load, 'kind' | 'seconds'> = { scenario: 'reviews', rate, ...(isLong ? { bigEvery: 100 } : {}) };
  const measured = async (what: string, load: Load): Promise<Measured> => {
    const result = await measureLoad(load);
    progress(`measured ${what}: ${result.client.asked} requests in ${load.seconds.toFixed(0)} s`);
    for (const problem of result.client.problems) progress(`  ${problem}`);
    return result;
  };
  const bare = await measured('a bare HTTPS server', { ...reviews, kind: 'bare', seconds: short });
  const webhook = await measured('the webhook', { ...reviews, kind: 'webhook', seconds });
  const evictions = await measured('evictions', { kind: 'webhook', scenario: 'evictions', rate: evictionRate, seconds: short });
  return [...loadFigures(webhook, bare, isLong), ...evictionFigures(evictions)];
}

/** Returns the figures of the load of reviews. */
export function loadFigures({ server, client }: Measured, bare: Measured, isLong: boolean): readonly Figure[] {
  const { handlerMs, bigHandlerMs, samples } = server;
  const load = `webhook, ${rate} reviews/s of 20 KiB${isLong ? ', 1 % of 3 MiB' : ''}`;
  const bareMs = (of: Of): string => `bare Node HTTPS server ${of(bare.client.answerMs).toFixed(1)} ms`;
  const handler = (name: string, of: Of): Figure => ({
    what: `${load}: handler's own time, ${name}`,
    value: of(handlerMs),
    bar: 10,
    unit: 'ms',
    floor: `without the API server's; of ${handlerMs.length} requests`,
  });
  const answer = (name: string, of: Of, late = ''): Figure => ({
    what: `${load}: from request to answer, ${name}`,
    value: of(client.answerMs),
    unit: 'ms',
    floor: `${bareMs(of)}${late}`,
  });
  const kept = slopeOf(samples, ({ keptMiB }) => keptMiB);
  const resident = slopeOf(samples, ({ residentMiB }) => residentMiB);
  const growth = (of: Measured['server']['samples'], field: 'keptMiB' | 'residentMiB'): string =>
    slopeOf(of, (sample) => sample[field]).toFixed(2);
  // These samples show whether the memory grows, or was higher only once.
  const looks = samples.map(({ residentMiB }) => residentMiB.toFixed(0)).join(', ');
  const last = samples.at(-1);
  return [
    handler('p50', median),
    handler('p99', p99),
    answer('p50', median),
    answer('p99', p99),
    {
      ...answer('max', most, `; the last left ${client.lateMs.toFixed(0)} ms late`),
      value: most([...client.answerMs, ...client.bigAnswerMs]),
      bar: 1000,
    },
    ...(isLong ? [bigFigure(load, { bigHandlerMs, client, bare })] : []),
    failures(
      load,
      client,
      `bare Node HTTPS server ${bare.client.failed}; ${client.connections} connections, ${client.certificates} certificates`,
    ),
    {
      // The modules of this script are a large part. The memory of the executable is measured on a control plane.
      what: `${load}: resident memory`,
      value: most(samples.map(({ residentMiB }) => residentMiB)),
      unit: 'MiB',
      floor: `bare Node HTTPS server ${most(bare.server.samples.map(({ residentMiB }) => residentMiB)).toFixed(0)} MiB`,
    },
    {
      what: `${load}: growth of memory kept, last half`,
      value: kept,
      bar: 1,
      unit: 'MiB/min',
      floor: `bare Node HTTPS server ${growth(bare.server.samples, 'keptMiB')}; ${last?.keptMiB.toFixed(0)} MiB at the end`,
    },
    {
      what: `${load}: growth of resident memory, last half`,
      value: resident,
      unit: 'MiB/min',
      ...(isLong ? { bar: 1 } : {}),
      floor: `bare Node HTTPS server ${growth(bare.server.samples, 'residentMiB')}; ${looks} MiB${isLong ? '' : '; of so few seconds it says little'}`,
    },
  ];
}

type Of = (values: readonly number[]) => number;

const p99: Of = (values) => percentile(values, 99);
const most: Of = (values) => percentile(values, 100);

function bigFigure(
  load: string,
  { bigHandlerMs, client, bare }: Pick<Measured, 'client'> & { readonly bigHandlerMs: readonly number[]; readonly bare: Measured },
): Figure {
  return {
    what: `${load}: from request to answer, those of 3 MiB, p99`,
    value: p99(client.bigAnswerMs),
    unit: 'ms',
    floor: `bare Node HTTPS server ${p99(bare.client.bigAnswerMs).toFixed(1)} ms; handler's own time ${p99(bigHandlerMs).toFixed(1)} ms`,
  };
}

/** Returns the number of failed requests; unmeasured if the client did not see the second certificate. */
function failures(load: string, { asked, failed, certificates }: Measured['client'], floor: string): Figure {
  const value = certificates === 2 ? failed : Number.NaN;
  return { what: `${load}: of ${asked} requests lost, or with a wrong answer`, value, bar: 0, unit: 'requests', floor };
}

/** Returns the figures of the load of evictions. */
export function evictionFigures({ server, client }: Measured): readonly Figure[] {
  const load = `webhook, ${evictionRate} evictions/s on one group`;
  const verdict = (name: string, of: Of, bar: Pick<Figure, 'bar'>): Figure => ({
    what: `${load}: verdict with reservation, ${name}`,
    value: of(client.answerMs),
    unit: 'ms',
    ...bar,
    floor: `each call to the API server takes ${evictionLatencyMs} ms; ${server.ledgerWrites} writes of the ledger`,
  });
  return [verdict('p50', median, {}), verdict('p99', p99, { bar: 150 }), failures(load, client, `${client.certificates} certificates`)];
}
