// Every defect that the simulation must find.
import { admittingDefects } from './catalogue/admitting.ts';
import { countingDefects } from './catalogue/counting.ts';
import { leadershipDefects } from './catalogue/leadership.ts';
import { ledgerDefects } from './catalogue/ledger.ts';
import { masterDefects } from './catalogue/masters.ts';
import { mixingDefects } from './catalogue/mixing.ts';
import { namespaceDefects } from './catalogue/namespaces.ts';
import { pinnedDefects } from './catalogue/pinned.ts';
import { policyDefects } from './catalogue/policies.ts';
import { preparingDefects } from './catalogue/preparing.ts';
import { requestDefects } from './catalogue/requests.ts';
import { returningDefects } from './catalogue/returning.ts';
import { reviewingDefects } from './catalogue/reviewing.ts';
import { ruleDefects } from './catalogue/rules.ts';
import { sightDefects } from './catalogue/sight.ts';
import { wakingDefects } from './catalogue/waking.ts';
import { waveDefects } from './catalogue/waves.ts';
import type { Defect } from './defect.ts';

export const defects: readonly Defect[] = [
  ...requestDefects,
  ...ledgerDefects,
  ...sightDefects,
  ...countingDefects,
  ...ruleDefects,
  ...preparingDefects,
  ...pinnedDefects,
  ...leadershipDefects,
  ...wakingDefects,
  ...admittingDefects,
  ...reviewingDefects,
  ...waveDefects,
  ...returningDefects,
  ...policyDefects,
  ...mixingDefects,
  ...masterDefects,
  ...namespaceDefects,
];
