// Judges the load of a process: one that requests or decides without a pause loads the server (L13).
import type { Oracle, Scene } from './oracle.ts';

const windowMs = 60_000;

/** Limit per process and minute: more than twice the highest observed value. A process that retries without a pause doubles it. */
const bounds = {
  request: { least: 800, ofPod: 10 },
  turn: { least: 350, ofPod: 5 },
} as const;

type Kind = keyof typeof bounds;

interface Window {
  readonly fromMs: number;
  readonly counts: Record<Kind, number>;
  /** Processes that were reported already. */
  readonly told: Set<Kind>;
}

/** Requests count when they are sent: a refused connection makes retries easy. */
export function judgeEffort(scene: Scene): Oracle {
  const windows = new Map<string, Window>();
  const count = (process: string, kind: Kind): void => {
    const nowMs = scene.nowMs();
    let window = windows.get(process);
    if (window === undefined || nowMs - window.fromMs >= windowMs) {
      window = { fromMs: nowMs, counts: { request: 0, turn: 0 }, told: new Set() };
      windows.set(process, window);
    }
    window.counts[kind] += 1;
    const { least, ofPod } = bounds[kind];
    const number = window.counts[kind];
    if (number <= least || window.told.has(kind)) return;
    // Each pod may need a request, a touch and a read. Pods come and go, so the limit may fall below an earlier count.
    const limit = least + ofPod * scene.list('pods', scene.namespace).length;
    if (number <= limit) return;
    window.told.add(kind);
    const what = kind === 'request' ? 'requests' : 'turns';
    scene.violated('L13', `${process} has made ${number} ${what} within ${Math.round(nowMs - window.fromMs)} ms`);
  };
  return {
    sending: ({ process }) => count(process, 'request'),
    turnEnded: (process) => count(process, 'turn'),
  };
}
