// Judge of how busy a process is: one that asks or decides without a pause costs everybody the server, though nothing wrong comes of it (L13).
import type { Oracle, Scene } from './oracle.ts';

const windowMs = 60_000;

/**
 * In a minute of a process, whatever goes wrong: more than twice of what was ever seen, clocks that run twice as fast included. Whoever tries again
 * without a pause comes to twice as much, although an answer takes up to 60 ms.
 */
const bounds = {
  request: { least: 800, ofPod: 10 },
  turn: { least: 350, ofPod: 5 },
} as const;

type Kind = keyof typeof bounds;

interface Window {
  readonly fromMs: number;
  readonly counts: Record<Kind, number>;
  /** Of which it has been said that there were too many. */
  readonly told: Set<Kind>;
}

/** Requests count when they are sent, whether or not they arrive: a refused connection makes it easy to try again. */
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
    // Each pod may have to be asked, touched and looked at once more. They come and go, so the limit may fall below what was counted before.
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
