import { describe, expect, it } from 'vitest';
import type { RuleResult } from '../../engine/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type Explanation, renderExplanation } from '../../plugin/output/explain.ts';
import { fakeApiServer } from './api-server.ts';
import { decision, rollStep } from './decision-kit.ts';
import { runInProcess } from './in-process.ts';
import { rolling, waiting } from './live-kit.ts';
import { publishedObject } from './live-objects.ts';
import { look, refusedDownscale } from './plan-kit.ts';

const passed: readonly RuleResult[] = [
  { rule: 'other-zones-ready', outcome: 'ok', fact: 'all pods of the other zones are available: zone-a 20/20, zone-b 20/20' },
  { rule: 'min-interval', outcome: 'skip', fact: 'no interval is set' },
];
const approval: RuleResult = {
  rule: 'approval',
  outcome: 'wait',
  fact: '0 of 1 approvals are given',
  limit: '1 of oncall',
  source: { file: 'policy/ingester.yaml', line: 58, column: 9 },
};
const soak: RuleResult = {
  rule: 'soak',
  outcome: 'wait',
  fact: 'wave canary has soaked for 2m',
  limit: '5m',
  earliestMs: Date.parse('2026-08-22T12:10:00Z'),
};

function explained(results: readonly RuleResult[], rest: Partial<Explanation> = {}): Explanation {
  const waits = results.filter((result) => result.outcome !== 'ok' && result.outcome !== 'skip');
  const outcome = waits.length === 0 ? 'act' : 'wait';
  return {
    decision: decision({ phase: waits.length === 0 ? 'Rolling' : 'Waiting', outcome, waits, steps: [rollStep('zone-c', results)] }),
    refused: [],
    nowMs: Date.parse('2026-08-22T12:07:00Z'),
    showsAllRules: false,
    ...rest,
  };
}

describe('the explanation of a group', () => {
  it('lists every rule on request, the blocking rule with its source, and the possible actions', () => {
    expect(renderExplanation(explained([...passed, approval], { showsAllRules: true }), look({ columns: 100 }))).toMatchInlineSnapshot(`
      "mimir/ingester is WAITING. A person must act.

        goal     40 of 60 pods updated
        zones    zone-a 20/20 updated, 20 available; zone-b 7/20 updated, 15 available; zone-c 0/20
                 updated, 20 available

        step     roll zone-c 19..17   blocked by 1 of 3 rules
         [WAIT] approval           0 of 1 approvals are given (limit: 1 of oncall)
                                   defined at policy/ingester.yaml:58:9
                                   passes when the wave has the required approvals
         [ok]   other-zones-ready  all pods of the other zones are available: zone-a 20/20, zone-b 20/20
         [SKIP] min-interval       no interval is set

        do       to approve: kubectl rollout-group approve mimir/ingester
      "
    `);
  });

  it('has the command that ends an exception only for a group in a cluster', () => {
    const permitted: RuleResult = { rule: 'freeze', outcome: 'no', fact: 'frozen', exception: 'fix-now' } as RuleResult;
    const one = explained([soak]);
    const shown = (rest: Partial<Explanation>) =>
      renderExplanation({ ...one, decision: { ...one.decision, permitted: [permitted] }, ...rest }, look({ columns: 100 }));
    expect(shown({ isLive: true })).toContain('to end the exception: kubectl rollout-group cancel mimir/ingester');
    expect(shown({})).not.toContain('to end the exception');
  });

  it('reports a step that time alone allows', () => {
    const text = renderExplanation(explained([soak]), look());
    expect(text).toContain('Nothing is wrong; the group continues by itself.');
    expect(text).toContain('passes at 2026-08-22 12:10 UTC (in 3m) if nothing else changes');
    expect(text).toContain('do       to skip it: kubectl rollout-group promote mimir/ingester');
  });

  it.each([
    [passed, 'No rule blocks the next step.'],
    [[{ rule: 'paused', outcome: 'no', fact: 'anna paused it' }], 'A rule blocks the next step until the request or the rule changes.'],
    [
      [{ rule: 'view-complete', outcome: 'unknown', fact: 'pods of zone-b could not be listed' }],
      'Some evidence could not be read, and unknown evidence blocks.',
    ],
  ] satisfies [readonly RuleResult[], string][])('sums up %#', (results, verdict) => {
    expect(renderExplanation(explained(results), look()).split('\n')[0]).toContain(verdict);
  });

  it('names the action that prepares a blocked step', () => {
    const waiting: RuleResult = { rule: 'delayed-downscale', outcome: 'wait', fact: '2 pods must prepare' };
    const { decision, ...rest } = explained([waiting]);
    const action = {
      kind: 'callPods',
      zone: 'zone-c',
      statefulSet: 'ingester-zone-c',
      ordinals: [19],
      call: 'delayed',
      method: 'POST',
    } as const;
    const acting = { ...rest, decision: { ...decision, outcome: 'act' as const, actions: [action as never] } };
    expect(renderExplanation(acting, look()).split('\n')[0]).toContain(
      'The agent prepares the next step: ask ingester-zone-c 19 to prepare for a delayed downscale.',
    );
  });

  it('counts the rules that passed, each rule once', () => {
    const one = explained([...passed, approval]);
    const steps = ['zone-b', 'zone-c'].map((zone) => rollStep(zone, [...passed, approval]));
    const text = renderExplanation({ ...one, decision: { ...one.decision, steps } }, look());
    expect(text).toContain('[WAIT] approval');
    expect(text).not.toContain('[ok]');
    expect(text).toContain('  passed   2 rules passed or do not apply; explain --all-rules lists them');
    expect(renderExplanation(explained([approval]), look())).not.toContain('  passed ');
  });

  it('shows a denied request with the rule', () => {
    const text = renderExplanation(explained(passed, { refused: refusedDownscale().refused }), look());
    expect(text).toContain('1 request denied; change the request or the rule.');
    expect(text).toContain('  DENIED   scale down zone-b from 3 to 2');
    expect(text).toContain('   [NO]   no-downscale  zone-b is protected from replica decreases (limit: protect.noDownscale is true)');
    expect(text).toContain('  do       change the request, or no-downscale at policy/store-gateway.yaml:41:7');
  });

  it('has the same text without colour', () => {
    const coloured = renderExplanation(explained([...passed, approval, soak]), look({ columns: 80, colour: true }));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of them.
    expect(coloured.replace(/\u001b\[\d+m/g, '')).toBe(renderExplanation(explained([...passed, approval, soak]), look({ columns: 80 })));
    expect(coloured).toContain('\u001b[33m[WAIT]\u001b[39m');
  });
});

async function explainedSubject(decision: PublishedDecision, subject: string): Promise<string> {
  const { url } = await fakeApiServer([publishedObject({ ...decision, decidedMs: Date.now() })], {});
  return (await runInProcess(['explain', subject, '--server', url, '-n', 'mimir'])).stdout;
}

it.each([
  ['pod/ingester-zone-c-0', 'c: waits for zone b (wave 3/3 rest)'],
  ['sts/ingester-zone-c', 'c: waits for zone b (wave 3/3 rest)'],
  ['sts/ingester-zone-b', 'b: blocked by zone-budget (wave 3/3 rest)'],
  ['sts/ingester-zone-a', undefined],
  ['pod/ingester-zone-b-19', undefined],
])('shows the state of the group for %s, and the waits of its zone', async (name, wait) => {
  const pod = { zone: 'b', pod: 'ingester-zone-b-12', state: 'crashing', reason: 'CrashLoopBackOff' } as const;
  const crashing = { ...rolling, pods: [pod, ...rolling.pods.slice(1)] };
  const stdout = await explainedSubject(crashing, name);
  const whole = await explainedSubject(crashing, 'ingester');
  const others = (text: string) => text.split('\n').filter((line) => !/^ {2}(pod|zone|decided) /.test(line));
  expect(others(stdout)).toEqual(others(whole));
  expect(stdout).toContain('Some pods do not recover by themselves and need a repair.');
  expect(stdout).toContain('  trouble  b-12 crashes (CrashLoopBackOff)\n');
  expect(/^ {2}zone +(.*)$/m.exec(stdout)?.[1]).toBe(wait);
});

it('names the wave in which the zone of a pod has no step', async () => {
  const steps = [{ id: 'after/canary', kind: 'roll', zone: 'a', outcome: 'wait', podCount: 0 }] as const;
  const soaking = { ...waiting, wave: { name: 'canary', index: 0, count: 3 }, steps };
  expect(await explainedSubject(soaking, 'pod/ingester-zone-c-0')).toContain('  zone     c: waits for wave canary (wave 1/3 canary)\n');
});
