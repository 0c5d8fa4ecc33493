// Writes JUnit XML for build servers.

export interface JunitCase {
  readonly name: string;
  readonly className: string;
  readonly failure?: { readonly type: string; readonly message: string; readonly text: string };
  readonly output?: string;
}

export function junitXml(suites: readonly { readonly name: string; readonly cases: readonly JunitCase[] }[]): string {
  const total = counts(suites.flatMap(({ cases }) => cases));
  const body = suites.flatMap(({ name, cases }) => [
    `  <testsuite${attributes({ name, ...counts(cases) })}>`,
    ...cases.map(caseXml),
    '  </testsuite>',
  ]);
  return `${['<?xml version="1.0" encoding="UTF-8"?>', `<testsuites${attributes(total)}>`, ...body, '</testsuites>'].join('\n')}\n`;
}

function counts(cases: readonly JunitCase[]): Readonly<Record<string, number>> {
  return { tests: cases.length, failures: cases.filter(({ failure }) => failure !== undefined).length, errors: 0 };
}

function caseXml({ name, className, failure, output }: JunitCase): string {
  const open = `    <testcase${attributes({ name, classname: className })}`;
  if (failure !== undefined) {
    const { type, message, text } = failure;
    return `${open}>\n      <failure${attributes({ type, message })}>${escaped(text)}</failure>\n    </testcase>`;
  }
  return output === undefined ? `${open}/>` : `${open}>\n      <system-out>${escaped(output)}</system-out>\n    </testcase>`;
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escaped(String(value)).replaceAll('\n', '&#10;')}"`)
    .join('');
}

/** Escapes text for XML. Replaces control characters except tab and newline, because XML 1.0 cannot represent many of them. */
function escaped(text: string): string {
  return text
    .replace(/(?![\t\n])[\p{Cc}\p{Cs}\ufffe\uffff]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
