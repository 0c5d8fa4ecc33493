// Runs agents in virtual time, scrapes their metrics once a minute, and evaluates alerts over the samples with promtool.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { Metrics } from '../../agent/metrics/metrics.ts';
import { findPromtool } from '../control-plane/prometheus.ts';
import { startProcess } from '../kit/agent-process.ts';
import { type Cluster, nativeGroup, newCluster } from '../kit/cluster.ts';

const rules = resolve('deploy/monitoring/alerts.yaml');

export const promtool = findPromtool();
/** Describes tests that need promtool. Without promtool they are skipped under a name that says so; in CI they fail. */
export const describeWithPromtool =
  promtool === undefined && process.env['CI'] === undefined
    ? (name: string, tests: () => void) => describe.skip(`SKIPPED: ${name}, for there is no executable promtool`, tests)
    : describe;

/** Samples of each series, one for each minute: `_` before its first sample, `stale` after its last. */
type Samples = Map<string, string[]>;

/** Scrapes processes once a minute, as Prometheus does: adds the labels of the target, but keeps those of the metric. */
function scraper(cluster: Cluster) {
  const { clock } = cluster.env;
  const startMs = clock.nowMs();
  const samples: Samples = new Map();
  const targets: { readonly pod: string; readonly metrics: Metrics; isUp: boolean }[] = [];
  let count = 0;
  const scrape = async (): Promise<void> => {
    for (const { pod, metrics, isUp } of targets) {
      if (!isUp) continue;
      const { text } = await metrics.text();
      for (const [, name = '', labels = '', value = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)) {
        const own = labels.includes('namespace="') ? '' : 'namespace="mimir",';
        // promtool begins at the time 0.
        const shifted = name.endsWith('_timestamp_seconds') && !name.includes('operator') ? Number(value) - startMs / 1000 : value;
        const key = `${name}{${own}job="agent",pod="${pod}"${labels === '' ? '' : `,${labels}`}}`;
        const known = samples.get(key) ?? [];
        while (known.length < count) known.push('_');
        samples.set(key, [...known, `${shifted}`]);
      }
    }
    count += 1;
    for (const values of samples.values()) if (values.length < count) values.push('stale');
  };
  return {
    samples,
    minutes: () => count - 1,
    /** Adds a process of the agent. Returns its metrics, and a function that ends its scrapes. */
    target: (pod = 'agent-1') => {
      const target = { pod, metrics: new Metrics(clock, '1.2.3'), isUp: true };
      targets.push(target);
      const end = (): void => {
        target.isUp = false;
      };
      return { metrics: target.metrics, end };
    },
    pass: async (minutes: number): Promise<void> => {
      if (count === 0) await scrape();
      for (let minute = 0; minute < minutes; minute += 1) {
        await cluster.env.advance(60_000);
        await scrape();
      }
    },
  };
}

/** What Prometheus has scraped until now. */
export interface Scraped {
  readonly samples: ReadonlyMap<string, readonly string[]>;
  readonly minutes: number;
}

/** Returns what promtool says about the failed tests of a file; empty if they pass. */
function run(file: object, name: string, ruleFile = rules): string {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // JSON is valid YAML.
  writeFileSync(join(folder, name), JSON.stringify({ rule_files: [ruleFile], evaluation_interval: '1m', ...file }));
  const { stdout, stderr, status } = spawnSync(promtool ?? 'promtool', ['test', 'rules', join(folder, name)], { encoding: 'utf8' });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

/** Fails unless exactly these alerts fire at the end of the samples. */
export function expectFiring({ samples, minutes }: Scraped, names: readonly string[], ruleFile = rules): void {
  const input = [...samples].map(([series, values]) => ({ series, values: values.join(' ') }));
  const expected = names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  const question = { expr: 'group by (alertname) (ALERTS{alertstate="firing"})', eval_time: `${minutes}m` };
  const file = { tests: [{ interval: '1m', input_series: input, promql_expr_test: [{ ...question, exp_samples: expected }] }] };
  expect(run(file, 'alerts.json', ruleFile)).toBe('');
}

/** The cluster with the group and one agent that Prometheus scrapes. */
export async function world({ spec = {}, config = {} }: { readonly spec?: object; readonly config?: object } = {}) {
  const cluster = newCluster();
  nativeGroup(cluster, { ...spec });
  const scrapes = scraper(cluster);
  const start = (name: string) => {
    const { metrics, end } = scrapes.target(name);
    const process = startProcess({ env: cluster.env, name, config, listeners: () => [metrics.listener] });
    return { metrics, process, end };
  };
  const first = start('agent-1');
  await scrapes.pass(2);
  const state = (): Scraped => ({ samples: scrapes.samples, minutes: scrapes.minutes() });
  return { cluster, scrapes, first, start, state };
}

/** Returns the last value of the only series of the metric that exists now and contains these labels. */
export function sample({ samples, minutes }: Scraped, name: string, labels = ''): number {
  const isNow = (values: readonly string[]): boolean => values.length > minutes && values.at(-1) !== 'stale';
  const found = [...samples].filter(([key, values]) => key.startsWith(`${name}{`) && key.includes(labels) && isNow(values));
  expect(found).toHaveLength(1);
  return Number(found[0]?.[1].at(-1));
}
