// The command `pod b-1 …`: what happens to one pod.
import { isUnknown, type PodView } from '../../../engine/snapshot.ts';
import type { ModelPod, ModelPods } from '../../../engine/world/model.ts';
import { type Commands, duration, word } from '../command.ts';
import { changeSnapshot, moveWorld, namespace, nowMs, podNamed, type Stage } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const podCommands: Commands = {
  pod: (stage, call) => {
    const pod = podNamed(stage, word(call, 0, 'a pod such as b-1'));
    const event = word(call, 1, 'what happens to it');
    const happen = events[event];
    if (happen === undefined) throw new Error(`pods do not ${event}; they can ${Object.keys(events).join(', ')}`);
    happen(stage, pod, call);
    return [];
  },
};

const events: Readonly<Record<string, (stage: Stage, pod: string, call: Call) => void>> = {
  /** The container waits, by default in CrashLoopBackOff. */
  crash: (stage, pod, call) => moveWorld(stage, { kind: 'podFails', namespace, pod, reason: call.words[2] ?? 'CrashLoopBackOff' }),
  /** The readiness probe fails. */
  unready: (stage, pod) => moveWorld(stage, { kind: 'podFails', namespace, pod }),
  ready: (stage, pod) => changePod(stage, pod, ({ view }) => ({ view, timer: { change: 'ready', atMs: nowMs(stage) } })),
  /** It is gone at once, and its StatefulSet makes another. */
  dies: (stage, pod) => moveWorld(stage, { kind: 'podDies', namespace, pod }),
  /** It is gone, and its StatefulSet cannot make another. */
  vanishes: (stage, pod) => removePod(stage, pod),
  /** Somebody deleted it, and it drains. */
  terminating: (stage, pod) => deletePod(stage, pod),
  /** Somebody deleted it, and it goes on answering its probe; it is gone when a node has nothing more to do. */
  lingers: (stage, pod) =>
    changePod(stage, pod, ({ view }) => ({
      view: { ...view, isTerminating: true },
      timer: { change: 'gone', atMs: nowMs(stage) + 600_000 },
    })),
  'node-down': (stage, pod) =>
    changeView(stage, pod, { node: 'node-1', nodeReady: false, isReady: false, containersReady: false, readyChangedMs: nowMs(stage) }),
  'node-up': (stage, pod) =>
    changeView(stage, pod, { nodeReady: true, isReady: true, containersReady: true, readyChangedMs: nowMs(stage) }),
  /** It answers with an error when it is asked to prepare. */
  refuses: (stage, pod) => void stage.refusing.add(pod),
  agrees: (stage, pod) => void stage.refusing.delete(pod),
  /** `pod a-2 prepared 10h`: it has been prepared for so long, and says so when it is asked. */
  prepared: (stage, pod, call) => {
    const reported = new Map(stage.world.reported).set(`${namespace}/${pod}`, nowMs(stage) - duration(word(call, 2, 'for how long')));
    stage.world = { ...stage.world, reported };
  },
};

function deletePod(stage: Stage, pod: string): void {
  const { view } = modelOf(stage, pod).model;
  const statefulSet = ownerOf(pod);
  const { uid, resourceVersion, ordinal } = view;
  const action = { kind: 'deletePod', namespace, zone: '', statefulSet, pod, ordinal, uid, resourceVersion, because: 'outdated' } as const;
  moveWorld(stage, { kind: 'action', action });
}

function changeView(stage: Stage, pod: string, change: Partial<PodView>): void {
  changePod(stage, pod, (model) => ({ ...model, view: { ...model.view, ...change } }));
}

/** Only the observer misses it: the model would make another at once. */
function removePod(stage: Stage, pod: string): void {
  const { view } = modelOf(stage, pod).model;
  const pods = stage.world.snapshot.pods.map((one) => ({
    ...one,
    pods: isUnknown(one.pods) ? one.pods : one.pods.filter((other) => other !== view),
  }));
  changeSnapshot(stage, { pods });
}

/** Changes a pod of the model, then lets the controller see it. */
function changePod(stage: Stage, pod: string, change: (model: ModelPod) => ModelPod): void {
  const { key, pods, model } = modelOf(stage, pod);
  const { view, timer } = change(model);
  const changed = pods.pods.map((candidate) => (candidate === model.view ? view : candidate));
  const timers = new Map(pods.timers);
  if (timer !== undefined) timers.set(view.ordinal, timer);
  const pending = new Map(stage.world.pending).set(key, nowMs(stage));
  const place = stage.world.places.get(key)?.pods;
  const views = stage.world.snapshot.pods.map((one, index) => (index === place ? { ...one, pods: changed } : one));
  stage.world = {
    ...stage.world,
    pods: new Map(stage.world.pods).set(key, { pods: changed, timers }),
    pending,
    snapshot: { ...stage.world.snapshot, pods: views },
  };
  moveWorld(stage, { kind: 'elapse', toMs: nowMs(stage) });
}

function modelOf(stage: Stage, pod: string): { readonly key: string; readonly pods: ModelPods; readonly model: ModelPod } {
  const key = `${namespace}/${ownerOf(pod)}`;
  const pods = stage.world.pods.get(key);
  const view = pods?.pods.find(({ name }) => name === pod);
  if (pods === undefined || view === undefined) throw new Error(`there is no pod ${pod}`);
  return { key, pods, model: { view, timer: pods.timers.get(view.ordinal) } };
}

function ownerOf(pod: string): string {
  return pod.slice(0, pod.lastIndexOf('-'));
}
