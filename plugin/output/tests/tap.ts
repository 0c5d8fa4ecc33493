// Writes the results of PolicyTests as TAP, version 14 (https://testanything.org/tap-version-14-specification.html).
import { failureFacts, type TestReport } from './results.ts';

export function testTap({ suites }: TestReport): string {
  const cases = suites.flatMap(({ name, cases: own }) => own.map((one) => ({ suite: name, one })));
  const lines = cases.flatMap(({ suite, one }, index) => {
    const head = `${one.passed ? 'ok' : 'not ok'} ${index + 1} - ${escaped(`${suite}: ${one.name}`)}`;
    // JSON is valid YAML and quotes all strings.
    return one.passed ? [head] : [head, '  ---', `  facts: ${JSON.stringify(failureFacts(one))}`, '  ...'];
  });
  return `${['TAP version 14', `1..${cases.length}`, ...lines].join('\n')}\n`;
}

/** Escapes text, because a `#` would start a directive such as SKIP. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('#', '\\#').replace(/\s+/g, ' ');
}
