// The short form of the run of 1,000 pods (scripts/bench/large-run.ts): 90 pods in three zones, in waves of 1, 50 and 100 per cent, by each engine.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openClaimLimit } from '../../engine/ledger/ledger.ts';
import { ledgerByteLimit } from '../../engine/ledger/ledger-document.ts';
import { podsPerPage } from '../../engine/notify/texts.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { checkHistory } from '../kit/watcher.ts';
import { createKinds, largeRunStrategies, newImage, playLargeRun, podLinesOf, wavePercents } from './large-run.ts';
import { expectedStretches, largeRunFacts } from './large-run-audit.ts';

const pods = 90;
const atOnce = 10;
/** chat.update takes no more characters. */
const longestMessage = 4000;

describeOnControlPlane('a run in waves over 90 pods with a PodDisruptionBudget', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    await createKinds(controlPlane());
    recorder = await recordHistory(controlPlane());
  });
  afterAll(() => recorder.stop());

  it.each(largeRunStrategies)(
    'replaces the expected pods with the strategy %s, within the budget, the ledger and the pages of Slack, and each pod returns at the recorded revision',
    async (strategy) => {
      const namespace = `large-${strategy.toLowerCase()}`;
      const run = await playLargeRun(controlPlane(), { namespace, pods, atOnce, strategy, readyAfter: '700ms', timeoutMs: 90_000 });
      process.stderr.write(`large run: ${pods} pods in ${run.wallMs} ms by ${strategy}\n`);

      const facts = await largeRunFacts(controlPlane(), namespace);
      expect(facts.stretches).toEqual(expectedStretches(run.zones, wavePercents));
      expect(facts.stretches.flatMap(({ ordinals }) => ordinals)).toHaveLength(pods);
      expect(facts.maxDown).toBeGreaterThan(1);
      expect(facts.maxDown).toBeLessThanOrEqual(atOnce);
      expect(facts.zonesTogether).toBe(0);
      expect(facts.ledger.maxBytes).toBeLessThanOrEqual(ledgerByteLimit);
      expect(facts.ledger.maxClaims).toBe(Math.min(openClaimLimit, atOnce));
      const [promised, maxRepeated] = strategy === 'pinned' ? [pods, 1] : [0, 0];
      expect(facts.placements).toEqual({ promised, broken: [], maxRepeated, images: [newImage] });
      const { requests, events } = await recorder.read();
      const zones = run.zones.map(({ statefulSet }) => ({ statefulSet, maxUnavailable: atOnce }));
      expect(checkHistory({ requests, events }, [controlPlane().identities.agent.user], [{ namespace, zones }])).toEqual([]);

      const { sent, messages } = run.slack;
      expect(sent.filter((text) => text.length > longestMessage || podLinesOf(text).length > podsPerPage)).toEqual([]);
      const pages = messages.filter(({ text }) => text.startsWith('Pods '));
      expect(pages.map(({ text }) => text.split('\n')[0])).toEqual(['Pods 1 to 50 of 90', 'Pods 51 to 90 of 90']);
      expect(new Set(pages.flatMap(({ text }) => podLinesOf(text))).size).toBe(pods);
      expect(messages.filter(({ isReply }) => !isReply)).toHaveLength(1);
    },
    180_000,
  );
});
