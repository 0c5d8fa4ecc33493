// Mistakes in a run: what a wave waits for, how many pods it includes, and what ends it.
import type { Defect } from '../defect.ts';

const waves = 'engine/run/waves.ts';
const rules = 'engine/rules/wave.ts';

export const waveDefects: readonly Defect[] = [
  {
    id: 'soak-not-awaited',
    title: 'a wave does not wait for the soak of the wave before',
    edits: [{ file: rules, find: 'return passed >= wave.after.soakMs\n', replace: 'return passed >= -wave.after.soakMs\n' }],
    breaks: ['S37'],
  },
  {
    id: 'soak-from-the-first-pod',
    title: 'a soak counts from the begin of its wave, not from the time at which its pods are available',
    edits: [
      {
        file: rules,
        find: 'results.push(soakResult(context, wave, run, sinceMs));',
        replace: 'results.push(soakResult(context, wave, run, run.waveStartedMs));',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'wave-with-one-pod-more',
    title: 'a wave replaces one pod more than it includes',
    edits: [
      {
        file: waves,
        find: 'const target = isInWave ? podsOfWave(context.group, run, view, wave) : 0;',
        replace: 'const target = isInWave ? Math.min(podsOfWave(context.group, run, view, wave) + 1, view.replicas) : 0;',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'gate-after-a-wave-ignored',
    title: 'the wave after a gate does not wait for the gate',
    edits: [
      {
        file: rules,
        find: '{ names: wave.after.gates, sinceMs, results }',
        replace: '{ names: wave.after.gates.slice(1), sinceMs, results }',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'wave-ends-by-old-requests',
    title: 'a wave ends by requests whose watch is silent',
    edits: [
      {
        file: 'agent/turn/turn.ts',
        find: 'return actions.some(isDestructive) || passesCheckpoint(ledger.run, run);',
        replace: 'return actions.some(isDestructive) || false;',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'approval-of-another-run',
    title: 'an approval counts in every run',
    edits: [
      {
        file: 'engine/run/requests.ts',
        find: 'if (runId !== undefined) return runId === run?.id;',
        replace: "if (runId !== undefined) return runId !== '';",
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'one-approval-is-enough',
    title: 'one approval starts a wave that needs two',
    edits: [
      {
        file: 'engine/rules/approval.ts',
        find: 'if (users.length >= approval.count) {',
        replace: 'if (users.length >= Math.min(1, approval.count)) {',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'interval-ignored',
    title: 'a pod is replaced at once after another one, without the minimum interval',
    edits: [{ file: 'engine/rules/roll.ts', find: 'return passed >= intervalMs\n', replace: 'return passed >= -intervalMs\n' }],
    breaks: ['S37'],
  },
  {
    id: 'zones-take-turns',
    title: 'after each pod the zone with the fewest updated pods continues, although another zone is open',
    edits: [
      {
        file: 'engine/decide/roll.ts',
        find: 'return [...progress.zones].sort((a, b) => Number(b.view === first) - Number(a.view === first));',
        replace: 'return [...progress.zones].sort((a, b) => a.view.updated - b.view.updated);',
      },
    ],
    breaks: ['S37'],
  },
  {
    id: 'deadline-comes-late',
    title: 'a run fails only after three times its deadline for progress',
    edits: [
      {
        file: 'engine/rules/roll.ts',
        find: 'context.nowMs - lastProgressMs(context.view.zones, run) >= progressMs) {',
        replace: 'context.nowMs - lastProgressMs(context.view.zones, run) >= 3 * progressMs) {',
      },
    ],
    breaks: ['S38'],
  },
  {
    id: 'changed-waves-keep-their-number',
    title: 'a run whose waves change continues in the wave with the same number, although earlier waves lack pods',
    edits: [{ file: waves, find: 'run.waves !== digestOfWaves(context.group);', replace: "run.waves === '';" }],
    breaks: ['S37'],
  },
  {
    id: 'abort-ignored',
    title: 'a run continues although a person aborted it',
    edits: [
      {
        file: 'engine/run/run.ts',
        find: 'const [request] = abortRequests(context, run);',
        replace: 'const [request] = abortRequests(context, run).slice(1);',
      },
    ],
    breaks: ['S38'],
  },
];
