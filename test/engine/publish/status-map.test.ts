import { expect, it } from 'vitest';
import { ledgerName } from '../../../engine/ledger/ledger-document.ts';
import { isStatusMapName, statusMapName } from '../../../engine/publish/published.ts';

it.each(['foo', 'foo-status', 'status-foo', 'rollout-status-foo', 'status'])(
  'the decision of group %s lies where no ledger can',
  (group) => {
    for (const other of [group, 'foo', `${group}-status`, `status-${group}`]) expect(ledgerName(other)).not.toBe(statusMapName(group));
    expect([isStatusMapName(statusMapName(group)), isStatusMapName(ledgerName(group))]).toEqual([true, false]);
  },
);
