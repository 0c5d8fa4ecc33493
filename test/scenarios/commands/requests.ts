// The commands review and request: the webhook judges what somebody asks, and the write happens when it may.
import type { AdmissionRequest, Judgement } from '../../../engine/decision.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { carryOut } from '../act.ts';
import { type Commands, count, word } from '../command.ts';
import { actionText, judgementLines } from '../print.ts';
import { moveWorld, namespace, observe, podNamed, type Stage, statefulSetNamed } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const requestCommands: Commands = {
  /** `review scale a 2`, `review evict a-1`: judged, not carried out. */
  review: (stage, call) => judgementLines(judge(observe(stage), requestOf(stage, call))),
  /** `request scale a 2`: judged; pods are asked to prepare when that is the answer; written when it is allowed. */
  request: (stage, call) => {
    const request = requestOf(stage, call);
    const lines: string[] = [];
    let judgement: Judgement = judge(observe(stage), request);
    for (let calls = 0; judgement.outcome === 'prepare' && calls < 3; calls += 1) {
      lines.push(...judgement.actions.map(actionText));
      for (const action of judgement.actions) carryOut(stage, action);
      judgement = judge(observe(stage), request);
    }
    for (const action of judgement.actions) carryOut(stage, action);
    if (judgement.outcome === 'allow' && request.kind === 'scale' && request.to !== undefined)
      moveWorld(stage, { kind: 'setReplicas', namespace, statefulSet: request.statefulSet, replicas: request.to });
    return [...lines, ...judgementLines(judgement)];
  },
};

function requestOf(stage: Stage, call: Call): AdmissionRequest {
  const verb = word(call, 0, 'scale, update, restart, delete or evict');
  const target = word(call, 1, 'a zone or a pod');
  const base = {
    namespace,
    dryRun: call.words.includes('dry-run'),
    ...(call.options['as'] === undefined ? {} : { user: call.options['as'] }),
  };
  if (verb === 'evict') return { kind: 'evictPod', pod: podNamed(stage, target), ...base };
  if (verb === 'delete-pod') return { kind: 'deletePod', pod: podNamed(stage, target), ...base };
  const statefulSet = statefulSetNamed(stage, target);
  if (verb === 'delete') return { kind: 'deleteStatefulSet', statefulSet, ...base };
  if (verb === 'restart') return { kind: 'restart', statefulSet, ...base };
  const set = stage.world.snapshot.statefulSets.find(({ name }) => name === statefulSet);
  const change = { statefulSet, from: set?.replicas, to: replicasAfter(call, set?.replicas), ...base };
  const via = call.options['via'];
  if (verb === 'scale') return { kind: 'scale', via: via === 'update' || via === 'patch' || via === 'apply' ? via : 'scale', ...change };
  if (verb !== 'update') throw new Error(`nobody can ask to ${verb}`);
  const strategy = call.options['strategy'] === 'RollingUpdate' ? 'RollingUpdate' : 'OnDelete';
  const { partition } = call.options;
  const moved = partition === undefined ? {} : { partition: Number(partition) };
  return { kind: 'update', isTemplateChanged: call.words.includes('template'), strategy, via: 'update', ...moved, ...change };
}

/** `null` is what the object says when it names no replicas. */
function replicasAfter(call: Call, now: number | undefined): number | undefined {
  if (call.words[2] === 'null') return undefined;
  return /^\d+$/.test(call.words[2] ?? '') ? count(call, 2, 'replicas') : now;
}
