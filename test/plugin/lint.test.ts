import { describe, expect, it } from 'vitest';
import { sarifLog, sourceUri } from '../../plugin/output/findings.ts';
import { finding, type Place } from '../../policies/findings/finding.ts';
import { expectGolden, outputsOf } from './golden.ts';
import { runInProcess } from './in-process.ts';
import { rightGroup, wrongGroup } from './policies.ts';
import { folderWith } from './process.ts';
import { elementsOf } from './xml.ts';

const folder = () =>
  folderWith({ 'policies/wrong.yaml': wrongGroup, 'policies/right.yaml': rightGroup.replace('name: ingester', 'name: distributor') });

const lint = (words: readonly string[]) => runInProcess(words, { cwd: folder() });

describe('lint', () => {
  it('shows place, excerpt and remedy at each width, with and without colour', async () => {
    await expectGolden('lint', await outputsOf([['lint', 'policies']], lint));
  });

  it('has the same findings in each format', async () => {
    const views: Record<string, string> = {};
    for (const format of ['json', 'jsonl', 'junit', 'github', 'markdown'])
      views[format] = (await lint(['lint', 'policies', '-o', format])).stdout;
    await expectGolden('lint-formats', views);
  });

  it('fails on notices only on request', async () => {
    const cwd = folderWith({ 'right.yaml': rightGroup });
    const { status, stdout } = await runInProcess(['lint', '.'], { cwd });
    expect([status, stdout.split('\n').at(-2)]).toEqual([0, '1 finding (0 errors, 0 warnings, 1 notice) in 1 file']);
    const strict = await runInProcess(['lint', '.', '--strict', '-o', 'junit'], { cwd });
    expect([strict.status, elementsOf(strict.stdout).includes('failure')]).toEqual([4, true]);
    expect(elementsOf((await runInProcess(['lint', '.', '-o', 'junit'], { cwd })).stdout).includes('failure')).toBe(false);
  });

  it('finds errors that need several files', async () => {
    const cwd = folderWith({ 'a.yaml': rightGroup, 'b.yaml': rightGroup });
    const { status, stdout } = await runInProcess(['lint', 'a.yaml', 'b.yaml'], { cwd });
    expect(status).toBe(4);
    expect(stdout).toContain('b.yaml:4:9 error RG2101');
  });

  it('places findings about adopted settings at their annotation', async () => {
    const statefulSet = `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ingester-zone-a
  labels: { rollout-group: ingester, name: ingester-zone-a }
  annotations:
    rollout-max-unavailable: many
spec:
  updateStrategy: { type: OnDelete }
  template: { metadata: { labels: { name: ingester-zone-a } } }
`;
    expect((await runInProcess(['lint', '-'], { stdin: statefulSet })).stdout).toContain('-:7:30 warning RG4001');
  });
});

describe('lint as JUnit', () => {
  it('is well-formed XML for any content of the files', async () => {
    const cwd = folderWith({ '<&"\'>.yaml': `${wrongGroup}    "<b>&\\u0007]]>": "\\u001b"\n` });
    const { stdout } = await runInProcess(['lint', '.', '-o', 'junit'], { cwd });
    expect(elementsOf(stdout).filter((name) => name === 'failure')).toHaveLength(3);
  });
});

describe('lint as SARIF', () => {
  const log = async () => JSON.parse((await runInProcess(['lint', 'policies', '-o', 'sarif'], { cwd: folder() })).stdout);

  it('has one run of version 2.1.0 with a rule for each code that occurs', async () => {
    const { version, runs } = await log();
    expect(version).toBe('2.1.0');
    expect(runs).toHaveLength(1);
    expect(runs[0].tool.driver.rules.map(({ id }: { id: string }) => id)).toEqual(['RG2003', 'RG2006', 'RG2111']);
    expect(runs[0].invocations).toEqual([{ executionSuccessful: true }]);
  });

  it('points at the region of each result, relative to the repository, and at its rule', async () => {
    const [{ results, tool }] = (await log()).runs;
    expect(
      results.map(({ ruleId, ruleIndex, level, locations }: Result) => [
        ruleId,
        tool.driver.rules[ruleIndex].id,
        level,
        locations[0]?.physicalLocation,
      ]),
    ).toEqual([
      ['RG2111', 'RG2111', 'note', location('right', 7, 3, 10)],
      ['RG2006', 'RG2006', 'error', location('wrong', 12, 15, 22)],
      ['RG2003', 'RG2003', 'error', location('wrong', 13, 5, 19)],
    ]);
  });

  it('keeps the fingerprint of a finding if text above it moves, and distinguishes equal findings', () => {
    const place = (line: number, file = 'a.yaml', indent = 4): Place => ({
      file,
      line,
      column: indent + 1,
      endColumn: indent + 4,
      pointer: '/spec/x',
      excerpt: [{ line, text: `${' '.repeat(indent)}xyz: 1` }],
    });
    const prints = (...places: readonly Place[]) =>
      (
        sarifLog({ findings: places.map((one) => finding('RG2003', one, 'm')), files: [], failsFrom: 'warning', exitCode: 4 }) as Log
      ).runs[0]?.results.map(({ partialFingerprints }) => partialFingerprints.primaryLocationLineHash);
    const [first] = prints(place(3)) ?? [];
    expect(prints(place(40, 'b.yaml', 8))).toEqual([first]);
    expect(prints(place(3), place(3, 'b.yaml'))).toEqual([first, first?.replace(/:1$/, ':2')]);
    expect(prints({ ...place(3), pointer: '/spec/y' })).not.toEqual([first]);
  });

  it('writes names of sources as addresses', () => {
    expect(['a b/c.yaml', './x.yaml', 'git:main:p/ä.yaml', '-', '/etc/x.yaml'].map(sourceUri)).toEqual([
      'a%20b/c.yaml',
      'x.yaml',
      'p/%C3%A4.yaml',
      'stdin',
      'file:///etc/x.yaml',
    ]);
  });
});

interface Result {
  readonly ruleId: string;
  readonly ruleIndex: number;
  readonly level: string;
  readonly locations: readonly { readonly physicalLocation: unknown }[];
  readonly partialFingerprints: { readonly primaryLocationLineHash: string };
}

interface Log {
  readonly runs: readonly { readonly results: readonly Result[] }[];
}

function location(file: string, line: number, ...[startColumn, endColumn]: readonly [number, number]) {
  return { artifactLocation: { uri: `policies/${file}.yaml` }, region: { startLine: line, startColumn, endLine: line, endColumn } };
}
