// The models of the StatefulSet controller, the disruption controller and the node controller have to do what kube-controller-manager does.
//
// The test acts as the kubelets of both sides: it makes pods ready, unready, failed and gone. After each step it waits until the controllers
// are at rest, and compares the pods, the status of the StatefulSet and the status of the PodDisruptionBudget.
//
// Not played, because the model does not know it:
// - claims of volumes, and pods whose names do not end in an ordinal;
// - two StatefulSets or two budgets that select the same pods;
// - pods whose labels change, so that the StatefulSet releases them;
// - every node lost at once: Kubernetes then suspects its own network and deletes no pod;
// - the time that minReadySeconds takes: a pod is ready for longer than any minReadySeconds, or for less.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { commitSeed, rounds } from '../../kit/share.ts';
import { generateSteps } from './controllers/generate-steps.ts';
import { createModelSide } from './controllers/model-side.ts';
import { differAt, type StepDifference, tellSteps } from './controllers/play-steps.ts';
import { changeRealNode, nodeControllers, nodeFlags } from './controllers/real-node.ts';
import type { StepSequence } from './controllers/step.ts';
import type { Side } from './controllers/workload.ts';
import { RealServer } from './real-server.ts';
import { shrink } from './shrink.ts';

/** `CONTROLLERS_SEED=7 CONTROLLERS_SEQUENCES=20000` plays others, and more. Each commit plays other sequences. */
const seed = Number(process.env['CONTROLLERS_SEED'] ?? commitSeed % 1000);
const sequenceCount = Number(process.env['CONTROLLERS_SEQUENCES'] ?? rounds(2000, 60));
/** Differences that are told. */
const shownCount = Number(process.env['CONTROLLERS_SHOWN'] ?? 3);

/** A difference counts if this number of plays shows it. */
const playCount = 3;
/** The controllers need milliseconds for each step: many sequences wait for them side by side. */
const inFlight = 16;
/** The pauses between two looks double from the shortest to the longest. */
const [shortestMs, longestMs] = [8, 256];
/** A controller that has not acted by then does not act. Each further play of a sequence waits twice as long: the machine may be busy. */
const patienceMs = 6_000;

const controllers = ['disruption-controller', 'garbage-collector-controller', 'statefulset-controller', ...nodeControllers];

function count(played: Map<string, number>, { operations }: StepSequence): void {
  for (const kind of ['sequences', ...operations.map((step) => step.kind)]) played.set(kind, (played.get(kind) ?? 0) + 1);
}

function tellPlayed(name: string, played: ReadonlyMap<string, number>, plays: number): string {
  const { sequences = 0, ...kinds } = Object.fromEntries(played);
  const operations = Object.values(kinds).reduce((sum, one) => sum + one, 0);
  const list = Object.entries(kinds).sort(([, a], [, b]) => b - a);
  const told = list.map(([kind, number]) => `${kind} ${number}`).join(', ');
  return `controllers: ${name}, seed ${seed}: ${sequences} sequences in ${plays} plays, ${operations} operations (${told})\n`;
}

interface Gate {
  readonly hasMaxUnavailable: boolean;
  readonly share: number;
}

function play(name: string, { hasMaxUnavailable, share }: Gate, featureGates: string): void {
  describeOnControlPlane(
    name,
    (controlPlane: () => ControlPlane) => {
      let real: RealServer;
      let namespaces = 0;
      const played = new Map<string, number>();
      beforeAll(() => {
        real = new RealServer(controlPlane());
      });
      afterAll(() => {
        real?.close();
        process.stderr.write(tellPlayed(name, played, namespaces));
      });

      /** Returns a difference that several plays show: the controllers race with their caches, and so do their models. */
      const differs = async (sequence: StepSequence) => {
        let difference: StepDifference | undefined;
        for (let attempt = 0; attempt < playCount && (attempt === 0 || difference !== undefined); attempt += 1)
          difference = await differsOnce(sequence, attempt);
        return difference;
      };
      const differsOnce = async (sequence: StepSequence, attempt: number) => {
        const namespace = `c${namespaces++}`;
        const model = createModelSide(seed + attempt, { hasMaxUnavailable });
        await Promise.all([
          real.prepare(namespace),
          model.ask({ method: 'POST', path: '/api/v1/namespaces', body: JSON.stringify({ metadata: { name: namespace } }) }),
        ]);
        let waitedMs = 0;
        const wait = async (look: number): Promise<boolean> => {
          const pauseMs = Math.min(longestMs, shortestMs * 2 ** look);
          waitedMs = look === 0 ? pauseMs : waitedMs + pauseMs;
          await delay(pauseMs);
          return waitedMs < patienceMs * 2 ** attempt;
        };
        const side: Side = { ask: real.ask, nowMs: Date.now, changeNode: (...change) => changeRealNode(real.ask, ...change) };
        return await differAt(sequence, { model, real: side, wait }, namespace);
      };

      it('has the same pods, counters and budgets after every step', async () => {
        const found: string[] = [];
        let next = 0;
        const worker = async (): Promise<void> => {
          for (let number = next++; number < sequenceCount * share && found.length < shownCount; number = next++) {
            const sequence = generateSteps(seed, number, { hasMaxUnavailable });
            count(played, sequence);
            const difference = await differs(sequence);
            if (difference === undefined || found.length >= shownCount) continue;
            // A play that differs waits until the patience is over, so one play decides here.
            const small = await shrink(sequence, difference, (shorter) => differsOnce(shorter, 0));
            found.push(`seed ${seed}, sequence ${number}:\n${tellSteps(small.sequence, small.shown)}`);
          }
        };
        await Promise.all(Array.from({ length: inFlight }, worker));
        expect(found.join('\n\n')).toBe('');
      }, 1_800_000);
    },
    { onlyControllers: controllers, controllerFlags: nodeFlags, featureGates },
  );
}

play('the model of the controllers', { hasMaxUnavailable: false, share: 1 }, 'MaxUnavailableStatefulSet=false');
play(
  'the model of the controllers with MaxUnavailableStatefulSet',
  { hasMaxUnavailable: true, share: 0.25 },
  'MaxUnavailableStatefulSet=true',
);
