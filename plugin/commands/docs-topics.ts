// The pages of docs/ that are embedded in the executable.
import agent from '../../docs/agent.md';
import commandLine from '../../docs/command-line.md';
import concepts from '../../docs/concepts.md';
import conditions from '../../docs/conditions.md';
import deprecationPolicy from '../../docs/deprecation-policy.md';
import exitCodes from '../../docs/exit-codes.md';
import gates from '../../docs/gates.md';
import gettingStarted from '../../docs/getting-started.md';
import install from '../../docs/install.md';
import migrateOthers from '../../docs/migrate-from-other-operators.md';
import migrate from '../../docs/migrate-from-rollout-operator.md';
import notifications from '../../docs/notifications.md';
import output from '../../docs/output.md';
import people from '../../docs/people.md';
import plan from '../../docs/plan.md';
import policyTests from '../../docs/policy-tests.md';
import simulate from '../../docs/simulate.md';
import simulation from '../../docs/simulation.md';
import sources from '../../docs/sources.md';
import strategies from '../../docs/strategies.md';
import waves from '../../docs/waves.md';
import webhook from '../../docs/webhook.md';
import windows from '../../docs/windows.md';
import { rulesMarkdown } from '../../engine/rules/catalog.ts';
import { findingsMarkdown } from '../../policies/findings/codes.ts';

/** Markdown by topic. */
export const topics: Readonly<Record<string, string>> = {
  agent,
  'command-line': commandLine,
  concepts,
  conditions,
  'deprecation-policy': deprecationPolicy,
  'exit-codes': exitCodes,
  findings: findingsMarkdown(),
  gates,
  'getting-started': gettingStarted,
  install,
  'migrate-from-other-operators': migrateOthers,
  'migrate-from-rollout-operator': migrate,
  notifications,
  output,
  people,
  plan,
  'policy-tests': policyTests,
  rules: rulesMarkdown(),
  simulate,
  simulation,
  sources,
  strategies,
  waves,
  webhook,
  windows,
};
