// Judges how many requests and turns a process makes, and its pauses, because retries without a pause overload the API server (L13).
import { machineOf, type Oracle, type Scene } from './oracle.ts';

const windowMs = 60_000;

/** The limits per process and minute: more than twice the highest observed values, and half of the values of a retry without a pause. */
const bounds = {
  request: { least: 800, ofPod: 10 },
  turn: { least: 350, ofPod: 5 },
} as const;

type Kind = keyof typeof bounds;

interface Window {
  readonly fromMs: number;
  readonly deletedPodsBefore: number;
  readonly counts: Record<Kind, number>;
  /** The limits that the process was already reported to exceed. */
  readonly reported: Set<Kind>;
}

/** Creates the judge. A request counts when it is sent, because requests to a server that refuses connections are repeated the fastest. */
export function judgeEffort(scene: Scene): Oracle {
  const windows = new Map<string, Window>();
  /** The time before which a watch must not ask again, by process and watch. */
  const pausedUntilMs = new Map<string, number>();
  let deletedPods = 0;
  const count = (process: string, kind: Kind): void => {
    const nowMs = scene.nowMs();
    let window = windows.get(process);
    if (window === undefined || nowMs - window.fromMs >= windowMs) {
      window = { fromMs: nowMs, deletedPodsBefore: deletedPods, counts: { request: 0, turn: 0 }, reported: new Set() };
      windows.set(process, window);
    }
    window.counts[kind] += 1;
    const { least, ofPod } = bounds[kind];
    const number = window.counts[kind];
    if (number <= least || window.reported.has(kind)) return;
    // Each pod may need several requests and turns, also a pod that was deleted in the window, because its changes woke the group.
    const limit = least + ofPod * (scene.list('pods').length + deletedPods - window.deletedPodsBefore);
    if (number <= limit) return;
    window.reported.add(kind);
    scene.violated('L13', `${process} has made ${number} ${kind}s within ${Math.round(nowMs - window.fromMs)} ms`);
  };
  return {
    committed: ({ type, resource }) => {
      if (type === 'DELETED' && resource === 'pods') deletedPods += 1;
    },
    sending: ({ process, site }) => {
      count(process, 'request');
      const leftMs = (pausedUntilMs.get(watchOf(process, site)) ?? 0) - scene.nowMs();
      if (leftMs > 0)
        scene.violated('L13', `${process} sends ${site} ${Math.round(leftMs)} ms before the pause that the API server asked for ends`);
    },
    faulted: ({ process, site }, fault) => {
      // Several watches share a site: those of the webhooks of these groups, and those of two namespaces.
      const isShared = scene.group.disruption !== undefined || scene.webhooks !== undefined || scene.groups !== undefined;
      if (isShared || !/^watch\.(?!rollout)/.test(site) || fault.kind !== 'answer' || fault.retryAfterSeconds === undefined) return;
      const pauseMs = (fault.retryAfterSeconds * 1000) / Math.max(1, machineOf(scene, process).rate);
      pausedUntilMs.set(watchOf(process, site), scene.nowMs() + pauseMs);
    },
    turnEnded: (process) => count(process, 'turn'),
  };
}

/** Returns a key of the watch to which a list or a watch request belongs. */
function watchOf(process: string, site: string): string {
  return `${process} ${site.replace(/\.(?:list|watch)$/, '')}`;
}
