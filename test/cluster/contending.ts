// Processes that contend for one Lease, each with its own clock rate, pauses and network.
import type { ClusterEnv } from '../../cluster/env.ts';
import { Lease, type LeaseOptions } from '../../cluster/lease/lease.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';
import type { ModelApi } from '../kit/model-server.ts';
import { seededRandom, type VirtualEnv } from '../kit/virtual-env.ts';

export const leases = 'leases.coordination.k8s.io';

const limits = { durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

export interface Process {
  readonly lease: Lease;
  readonly told: string[];
  /** Nothing of it runs for that long; what comes meanwhile is done afterwards. */
  readonly pause: (durationMs: number) => void;
  readonly isPaused: () => boolean;
  /** Without a network every request fails; those that were sent still arrive. */
  readonly setNetwork: (isUp: boolean) => void;
}

export interface ProcessOptions extends Partial<LeaseOptions> {
  readonly identity: string;
  /** How fast its clocks run; 1 when left out. */
  readonly rate?: number;
  readonly seed?: number;
}

export function startProcess(base: VirtualEnv, { identity, rate = 1, seed = 1, ...options }: ProcessOptions): Process {
  let resumesMs = 0;
  let isUp = true;
  const now = base.clock.monotonicMs;
  const isPaused = (): boolean => now() < resumesMs;
  const whenAwake = (callback: () => void): (() => void) => {
    if (!isPaused()) {
      callback();
      return () => undefined;
    }
    return base.timers.after(resumesMs - now(), () => whenAwake(callback));
  };
  const awake = () => new Promise<void>((resolve) => whenAwake(resolve));
  const env: ClusterEnv = {
    clock: { nowMs: () => base.clock.nowMs() * rate, monotonicMs: () => now() * rate },
    timers: {
      after: (delayMs, callback) => {
        let cancelInner: () => void = () => undefined;
        const cancel = base.timers.after(delayMs / rate, () => {
          cancelInner = whenAwake(callback);
        });
        return () => {
          cancel();
          cancelInner();
        };
      },
    },
    random: seededRandom(seed),
    kubernetes: {
      stream: base.kubernetes.stream,
      request: async (request) => {
        if (!isUp) throw new TransportFailure('no network', { site: request.site, mayBeApplied: false });
        const answer = base.kubernetes.request(request);
        await answer.then(awake, awake);
        if (!isUp) throw new TransportFailure('the network went away', { site: request.site, mayBeApplied: true });
        return answer;
      },
    },
  };
  const told: string[] = [];
  const lease = new Lease({
    env,
    namespace: 'ns',
    name: 'agent',
    identity,
    ...limits,
    onAcquired: (epoch) => told.push(`acquired ${epoch}`),
    onLost: (reason) => told.push(`lost: ${reason}`),
    ...options,
  });
  return {
    lease,
    told,
    isPaused,
    pause: (durationMs) => {
      resumesMs = Math.max(resumesMs, now() + durationMs);
    },
    setNetwork: (isUpNow) => {
      isUp = isUpNow;
    },
  };
}

export function specOf(api: ModelApi): Readonly<Record<string, unknown>> | undefined {
  return api.get(leases, 'ns', 'agent')?.['spec'] as Readonly<Record<string, unknown>> | undefined;
}

/** Somebody edits the Lease, or writes one. */
export function edit(api: ModelApi, spec: Readonly<Record<string, unknown>>, metadata: Readonly<Record<string, unknown>> = {}): void {
  api.put(leases, { metadata: { ...metadata, namespace: 'ns', name: 'agent' }, spec: { ...specOf(api), ...spec } });
}
