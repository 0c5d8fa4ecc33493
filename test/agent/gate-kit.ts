// A metric server in a test, and a group whose zones are gated by it.
import type { GateAnswer, GateQuery } from '../../agent/env.ts';
import { type Cluster, nativeGroup } from '../kit/cluster.ts';
import type { VirtualEnv } from '../kit/virtual-env.ts';

/** What the metric server does with a question: an answer, or `hang`. */
export type Told = GateAnswer | 'hang' | Error;

export interface MetricServer {
  /** Every question so far, with the instant (monotonic) at which it came. */
  readonly asked: readonly (GateQuery & { readonly sentAtMs: number })[];
  readonly gates: (query: GateQuery) => Promise<GateAnswer>;
  /** Questions that have no answer yet. */
  readonly openCount: () => number;
  tell: () => Told;
}

/** Answers after 20 ms with what `tell` says then; a value of 0 until somebody sets it. Who hangs answers only when the caller's time is over. */
export function metricServer(env: VirtualEnv): MetricServer {
  const asked: (GateQuery & { readonly sentAtMs: number })[] = [];
  let open = 0;
  const server: MetricServer = {
    asked,
    openCount: () => open,
    tell: () => value(env, '0'),
    gates: (query) => {
      asked.push({ ...query, sentAtMs: env.clock.monotonicMs() });
      open += 1;
      let cancel = (): void => undefined;
      return new Promise<GateAnswer>((resolve, reject) => {
        env.timers.after(20, () => {
          const told = server.tell();
          if (told instanceof Error) reject(told);
          else if (told !== 'hang') resolve(told);
        });
        cancel = env.timers.after(query.timeoutMs, () => reject(new Error('the provider is silent')));
      }).finally(() => {
        cancel();
        open -= 1;
      });
    },
  };
  return server;
}

/** One sample, evaluated now or that much earlier. */
export function value(
  env: VirtualEnv,
  text: string,
  { ageMs = 0, ...more }: { readonly ageMs?: number; readonly warnings?: unknown } = {},
): Told {
  return vector([{ metric: {}, value: [(env.clock.nowMs() - ageMs) / 1000, text] }], more);
}

/** One number without a series. */
export function scalar(env: VirtualEnv, number: string): Told {
  return { status: 200, body: single(env, 'scalar', number) };
}

/** One text, as the query `"..."` has it. */
export function text(env: VirtualEnv, said: string): Told {
  return { status: 200, body: single(env, 'string', said) };
}

function single(env: VirtualEnv, resultType: string, said: string): string {
  return JSON.stringify({ status: 'success', data: { resultType, result: [env.clock.nowMs() / 1000, said] } });
}

/** Any number of samples. */
export function vector(result: readonly unknown[], more: object = {}): Told {
  return { status: 200, body: JSON.stringify({ status: 'success', data: { resultType: 'vector', result }, ...more }) };
}

/** Zone a, then b and c, with a gate after zone a: every 10 s, three in a row, at most 0.5. What `gate` and `after` say comes on top. */
export function gatedGroup(cluster: Cluster, gate: Readonly<Record<string, unknown>> = {}, after: object = {}): void {
  const definition = {
    name: 'errors',
    prometheus: { source: 'prod', query: 'sum(rate(errors_total[1m]))' },
    every: '10s',
    consecutive: 3,
    failureLimit: 0,
    noData: 'hold',
    onError: 'hold',
    pass: { '<=': [{ var: 'value' }, 0.5] },
    ...gate,
  };
  const waves = [
    { name: 'first', zones: ['a'], percent: 100, after: { gates: ['errors'], ...after } },
    { name: 'rest', zones: ['b', 'c'], percent: 100 },
  ];
  nativeGroup(cluster, { gates: [definition], rollout: { strategy: 'onDelete', rotateBy: 'delete', waves } });
}
