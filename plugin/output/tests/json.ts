// Results of PolicyTests for programs.
import type { OutputStream } from '../../context.ts';
import { writeDocument } from '../formats.ts';
import { countCases, type TestReport } from './results.ts';

/** One document of kind `TestResult`, with every rule that a case asked. */
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
