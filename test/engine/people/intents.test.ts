import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import { rolloutIntentSpec } from '../../../policies/schema/rollout-intent.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, intent, ledgerOf, minuteMs, outdatedSets } from '../../kit/questions.ts';
import { type IntentRow, intentRows } from './intents.ts';

/** Pods that go, decreases, and where nothing goes the steps with what holds them. */
function decided({ definition, run, state }: IntentRow, intents: readonly IntentView[]): string {
  const sets = outdatedSets(definition.zones.map(({ name }) => name));
  const ledgers = run === undefined ? [] : [ledgerOf({ run })];
  const { snapshot } = contextWith(definition, { statefulSets: sets, ledgers, ...state, intents });
  const { actions, steps } = decideGroup(snapshot, definition);
  const done = actions.flatMap((action) => {
    if (action.kind === 'deletePod') return [action.pod.replace('ingester-zone-', '')];
    return action.kind === 'scaleStatefulSet' ? [`scale ${action.from} to ${action.to}`] : [];
  });
  if (done.length > 0) return done.join(' ');
  const isHolding = (outcome: string): boolean => outcome === 'wait' || outcome === 'no' || outcome === 'unknown';
  return steps
    .map(
      ({ id, outcome, results }) => `${id} ${outcome}: ${results.flatMap((one) => (isHolding(one.outcome) ? [one.rule] : [])).join(' ')}`,
    )
    .join(', ');
}

const saying = ({ action, says }: IntentRow, more: Partial<IntentView> = {}): IntentView => intent({ action, ...says, ...more });

const vouched = (groups: readonly string[], atMs = ago(minuteMs)) => ({ user: 'kim', groups, atMs });

interface VoidWord {
  readonly because: string;
  readonly more: Partial<IntentView>;
  readonly isAnonymous?: true;
}

/** Words that never count, whatever they would permit. */
const voidWords: readonly VoidWord[] = [
  { because: 'that nobody vouches for', more: {}, isAnonymous: true },
  { because: 'of another run', more: { runId: 'run-0' } },
  { because: 'said before the run began', more: { requestedBy: vouched(['oncall'], ago(2 * hourMs)) } },
  { because: 'that has ended', more: { expiresMs: kitNowMs } },
  { because: 'about another group', more: { group: 'store-gateway' } },
  { because: 'from another namespace', more: { namespace: 'loki' } },
];

function anonymous({ requestedBy: _nobody, ...rest }: IntentView): IntentView {
  return rest;
}

describe('an intent', () => {
  it('has a row for every action', () => {
    expect(intentRows.map(({ action }) => action).sort()).toEqual([...rolloutIntentSpec.shape.action.options].sort());
  });

  it.each(intentRows)('$action: $does', (row) => {
    expect([decided(row, []), decided(row, [saying(row)])]).toEqual([row.without, row.with]);
  });

  const permits = intentRows.filter(({ isPermit }) => isPermit);

  it.each(permits.flatMap((row) => voidWords.map((word) => ({ ...word, row, action: row.action }))))(
    'to $action $because never counts',
    ({ row, more, isAnonymous }) => {
      const said = saying(row, more);
      expect(decided(row, [isAnonymous === true ? anonymous(said) : said])).toBe(row.without);
    },
  );

  it('to approve counts only for the group of the request', () => {
    const [row] = intentRows.filter(({ action }) => action === 'approve');
    if (row === undefined) throw new Error('there is a row for approve');
    expect(decided(row, [saying(row, { requestedBy: vouched(['dev']) })])).toBe(row.without);
  });

  it('to approve counts only for the definition at that time', () => {
    const [row] = intentRows.filter(({ action }) => action === 'approve');
    if (row === undefined) throw new Error('there is a row for approve');
    expect(decided(row, [saying(row, { digest: '0'.repeat(32) })])).toBe(row.without);
    const { digest: _none, ...bare } = saying(row);
    expect(decided(row, [bare])).toBe(row.without);
  });

  it.each(intentRows.filter(({ isPermit, action }) => !isPermit && action !== 'reject' && action !== 'abort'))(
    'to $action blocks, from any requester',
    (row) => {
      expect(decided(row, [anonymous(saying(row))])).toBe(row.with);
    },
  );
});
