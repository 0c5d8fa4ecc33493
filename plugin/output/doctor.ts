// Renders the checks of doctor, one per line: verdict, subject and message.
import { explainCode } from '../../policies/findings/codes.ts';
import { counted } from '../../policies/wording.ts';
import type { OutputStream } from '../context.ts';
import type { CheckResult, Verdict } from '../doctor/check.ts';
import type { Style } from './terminal.ts';
import { paragraph } from './text.ts';

interface ChecksLook extends Pick<OutputStream, 'paint'>, Partial<Pick<OutputStream, 'columns'>> {
  readonly hasHints: boolean;
  readonly hasDetails?: boolean;
}

const styles: Readonly<Record<Verdict, Style>> = { ok: 'green', warn: 'yellow', FAIL: 'red', SKIP: 'dim' };

export function renderChecks(results: readonly CheckResult[], { paint, columns, hasHints, hasDetails = false }: ChecksLook): string {
  const subjectWidth = Math.max(0, ...results.map(({ check }) => check.length));
  const lines = results.flatMap(({ check, verdict, message, code, details = [] }) => {
    const mark = verdict.padEnd(4);
    const hint = code === undefined ? undefined : explainCode(code)?.hint;
    const more = details.length === 0 || hasDetails ? '' : '; details with -v=1 or -o json';
    const text = `${message}${more}${code === undefined ? '' : ` (${code})`}`;
    const [first = '', ...rest] = paragraph(`${mark}  ${check.padEnd(subjectWidth)}  `, text, columns);
    const below = [...(hasDetails ? details : []), ...(hasHints && hint !== undefined ? [`fix: ${hint}`] : [])];
    const indent = ' '.repeat(mark.length + 2);
    return [first.replace(mark, () => paint(styles[verdict], mark)), ...rest, ...below.flatMap((one) => paragraph(indent, one, columns))];
  });
  return `${[...lines, summary(results)].join('\n')}\n`;
}

function summary(results: readonly CheckResult[]): string {
  const count = (wanted: Verdict): number => results.filter(({ verdict }) => verdict === wanted).length;
  const parts = [
    `${count('ok')} ok`,
    `${count('FAIL')} failed`,
    counted(count('warn'), 'warning'),
    ...(count('SKIP') === 0 ? [] : [`${count('SKIP')} skipped`]),
  ];
  return `${counted(results.length, 'check')}: ${parts.join(', ')}`;
}
