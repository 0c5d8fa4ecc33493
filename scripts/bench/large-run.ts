// Rolls 1,000 pods in waves with a PodDisruptionBudget and a Slack channel. Checks the limits in the audit log and measures the time.

import { openClaimLimit } from '../../engine/ledger/ledger.ts';
import { ledgerByteLimit } from '../../engine/ledger/ledger-document.ts';
import { podsPerPage } from '../../engine/notify/texts.ts';
import { strategyTraits } from '../../policies/strategies.ts';
import { createKinds, type LargeRun, type LargeRunOptions, playLargeRun, podLinesOf, wavePercents } from '../../test/agent/large-run.ts';
import { expectedStretches, type LargeRunFacts, largeRunFacts } from '../../test/agent/large-run-audit.ts';
import type { ControlPlane } from '../../test/control-plane/control-plane.ts';
import type { Figure } from './figure.ts';

const pods = 1000;
const atOnce = 100;
/** Limit of the Slack method chat.update, in characters. */
const longestMessage = 4000;
const timeoutMs = 600_000;

/** Uses a new control plane: the whole audit log is read as one text, which has a maximum length. */
export async function largeRunFigures(controlPlane: ControlPlane, strategy: LargeRunOptions['strategy']): Promise<readonly Figure[]> {
  await createKinds(controlPlane);
  // Pods start slowly enough that a hundred pods are down before the first of them is Ready again.
  const options = { namespace: 'large', pods, atOnce, strategy, timeoutMs, readyAfter: '10s' };
  const run = await playLargeRun(controlPlane, { ...options, executable: 'dist/rollout-group-agent' });
  return figuresOf(strategy, run, await largeRunFacts(controlPlane, options.namespace));
}

function figuresOf(strategy: LargeRunOptions['strategy'], run: LargeRun, facts: LargeRunFacts): readonly Figure[] {
  const what = `${strategy}, ${pods.toLocaleString('en')} pods in waves of ${wavePercents.join(', ')} %`;
  const expected = expectedStretches(run.zones, wavePercents);
  const wrong = expected.filter((stretch, index) => JSON.stringify(stretch) !== JSON.stringify(facts.stretches[index])).length;
  const surplus = Math.max(0, facts.stretches.length - expected.length);
  const pages = run.slack.messages.filter(({ text }) => text.startsWith('Pods '));
  const longest = Math.max(...run.slack.sent.map((text) => text.length));
  const fullest = Math.max(...run.slack.sent.map((text) => podLinesOf(text).length));
  const replaced = facts.stretches.reduce((sum, { ordinals }) => sum + ordinals.length, 0);
  const { promised, broken, maxRepeated } = facts.placements;
  const figure = (name: string, [value, bar]: readonly [number, number], unit: Figure['unit'], floor: string): Figure => ({
    what: `${what}, ${name}`,
    value,
    bar,
    unit,
    floor,
  });
  return [
    figure(
      'waves of a zone that took other pods than asked',
      [wrong + surplus, 0],
      'waves',
      `${replaced} pods left, ${expected.length} waves of zones`,
    ),
    figure('down at once', [facts.maxDown, atOnce], 'pods', `${facts.refused} evictions were refused by the PodDisruptionBudget`),
    figure('other zones disturbed meanwhile', [facts.zonesTogether, 0], 'times', 'by the audit log'),
    figure('open claims', [facts.ledger.maxClaims, openClaimLimit], 'pods', `${facts.ledger.writes} writes of the ledger`),
    figure('ledger', [facts.ledger.maxBytes / 1024, ledgerByteLimit / 1024], 'KiB', 'the longest that was stored'),
    ...(strategyTraits[strategy].pinsPods
      ? [
          figure('pods that did not come back as promised', [replaced - promised + broken.length, 0], 'pods', 'the revision in the ledger'),
          figure('attempts at one pod', [maxRepeated, 1], 'times', 'each successor is made at its revision at once'),
        ]
      : []),
    figure('pods on a page of Slack', [fullest, podsPerPage], 'pods', `${pages.length} pages, ${run.slack.sent.length} requests`),
    figure('longest message', [longest, longestMessage], 'characters', 'chat.update takes 4,000'),
    { what: `${what}, from the new template to the end`, value: run.wallMs, unit: 'ms', floor: 'each pod takes 10 s to become Ready' },
  ];
}
