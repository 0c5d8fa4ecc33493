// Converts the results of PolicyTests to a document for programs.
import type { OutputStream } from '../../context.ts';
import { writeDocument } from '../formats.ts';
import { countCases, type TestReport } from './results.ts';

/** Returns one document of kind `TestResult`, with every evaluated rule of a case. */
export async function writeTestJson(stream: OutputStream, { suites, coverage, exitCode }: TestReport): Promise<void> {
  const { passed, failed } = countCases(suites);
  await writeDocument(stream, 'json', {
    kind: 'TestResult',
    exitCode,
    summary: { tests: suites.length, cases: passed + failed, passed, failed },
    tests: suites.map(({ file, name, cases }) => ({ file, name, cases: cases.map(({ asked: _, ...shown }) => shown) })),
    ...(coverage === undefined ? {} : { coverage }),
  });
}
