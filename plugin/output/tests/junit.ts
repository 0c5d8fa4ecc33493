// Writes the results of PolicyTests as JUnit XML: one suite per PolicyTest.
import { junitXml } from '../junit.ts';
import { failureFacts, type TestReport } from './results.ts';

export function testJunit({ suites }: TestReport): string {
  return junitXml(
    suites.map(({ file, name, cases }) => ({
      name,
      cases: cases.map((one) => ({
        name: one.name,
        className: file,
        ...(one.passed
          ? {}
          : {
              failure: {
                type: one.decision === '' ? 'error' : 'decision',
                message: one.problems[0] ?? '',
                text: failureFacts(one).join('\n'),
              },
            }),
      })),
    })),
  );
}
