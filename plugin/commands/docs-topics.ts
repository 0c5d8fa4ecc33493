// The pages of docs/ that the executable carries.
import commandLine from '../../docs/command-line.md';
import exitCodes from '../../docs/exit-codes.md';
import output from '../../docs/output.md';
import plan from '../../docs/plan.md';
import sources from '../../docs/sources.md';
import { rulesMarkdown } from '../../engine/rules/catalog.ts';
import { findingsMarkdown } from '../../policies/finding-codes.ts';

/** Markdown by topic. */
export const topics: Readonly<Record<string, string>> = {
  'command-line': commandLine,
  'exit-codes': exitCodes,
  findings: findingsMarkdown(),
  output,
  plan,
  rules: rulesMarkdown(),
  sources,
};
