// Large reviews: changed objects in no group, what stays of a long comment, and the same bytes from threads.
import { on } from 'node:events';
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { defaultAssumptions, type GroupPlan } from '../../engine/plan/document.ts';
import { readComment } from '../../plugin/forge/comment-text.ts';
import { renderReviewMarkdown } from '../../plugin/output/review/markdown.ts';
import type { PolicyEffect } from '../../review/document.ts';
import { runInProcess } from './in-process.ts';
import { ingester, planOf } from './plan-kit.ts';
import { runPlugin } from './process.ts';
import { ScratchRepository } from './review-kit.ts';

it('keeps the summary of each environment in a comment that is cut', () => {
  const changes: GroupPlan['changes'] = [
    {
      kind: 'template',
      zones: [],
      field: 'spec.template.spec.containers[x].image',
      before: 'x:1',
      after: `x:${'2'.repeat(2_000)}`,
      consequence: 'restart',
    },
  ];
  const groups = Array.from({ length: 20 }, (_, index): GroupPlan => ({ ...ingester(), group: `ingester-${index}`, changes }));
  const effects = Array.from({ length: 400 }, (_, index): PolicyEffect => {
    return {
      direction: 'loosened',
      namespace: 'mimir',
      group: 'ingester',
      cause: `rule ${index} is removed ${'x'.repeat(500)}`,
      decisions: [],
    };
  });
  const environments = ['staging', 'europe', 'america'].map((name) => ({ name, plan: planOf(groups), policies: { effects, asked: 1 } }));
  const comment = renderReviewMarkdown(
    { base: 'main', head: 'large', environments },
    { digest: '0', outcomes: environments.map(() => 'complete') },
  );
  expect(comment.length).toBeLessThanOrEqual(60_000);
  expect(comment.length).toBeGreaterThan(50_000);
  expect(comment.split('\n').slice(3, 8)).toMatchInlineSnapshot(`
    [
      "| environment | plan | loosened | restarts |",
      "| --- | --- | --- | --- |",
      "| staging | completes | 400 | 1200 |",
      "| europe | completes | 400 | 1200 |",
      "| america | completes | 400 | 1200 |",
    ]
  `);
  expect(comment).toMatch(/^\d+ more\.$/m);
  expect(readComment('review.md', comment, 65_536).environments).toHaveLength(3);
});

it('shortens the plans of all groups equally, before it omits one', () => {
  const groups = Array.from({ length: 20 }, (_, index): GroupPlan => ({ ...ingester(), group: `ingester-${index}` }));
  const environments = ['staging', 'europe', 'america'].map((name) => ({
    name,
    plan: planOf(groups),
    policies: { effects: [], asked: 1 },
  }));
  const shown = (some: typeof environments) =>
    renderReviewMarkdown({ base: 'main', head: 'large', environments: some }, { digest: '0', outcomes: some.map(() => 'complete') });
  const count = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].length;
  const [all, one] = [
    shown(environments),
    shown([{ ...environments[0], plan: planOf(groups.slice(0, 2)) } as (typeof environments)[number]]),
  ];
  expect([count(all, /<summary>Plan of/g), count(all, /<summary>Zones/g), all.includes('omitted')]).toEqual([60, 0, false]);
  expect([count(one, /<summary>Plan of/g), count(one, /<summary>Zones/g), all.length < 60_000]).toEqual([2, 2, true]);
});

it('shows the same change of several groups as one row, and each exception that permits an action', () => {
  const effectOf = (group: string, what: string): PolicyEffect => {
    const source = { file: `policies/${group}.yaml`, line: 1, column: 2 };
    return {
      direction: 'loosened',
      namespace: 'mimir',
      group,
      cause: `the delay of mimir/${group} falls from ${what}`,
      decisions: [],
      after: { source },
    };
  };
  const fact = 'zone a may have 2 replicas: INC-441, until 2026-09-01 10:00 UTC, requested by anna';
  const groups = [{ ...ingester(), permitted: [{ rule: 'no-downscale', outcome: 'ok', fact } as const] }];
  const effects = [...['a', 'b', 'c'].map((name) => effectOf(name, '13h to 1h')), effectOf('d', '2h to 1h')];
  const environments = [{ name: 'default', plan: planOf(groups), policies: { effects, asked: 1 } }];
  const comment = renderReviewMarkdown({ base: 'main', head: 'head', environments }, { digest: '0', outcomes: ['complete'] });
  expect(comment.split('\n').slice(1, 13)).toMatchInlineSnapshot(`
    [
      "### Rollout review: 2 loosened, 60 restarts",
      "",
      "**Loosened**",
      "",
      "- the delay of mimir/a and 2 more groups falls from 13h to 1h: no question of the review shows its effect (\`policies/a.yaml:1:2 and 2 more places\`)",
      "  - in mimir/a, mimir/b and mimir/c",
      "- the delay of mimir/d falls from 2h to 1h: no question of the review shows its effect (\`policies/d.yaml:1:2\`)",
      "",
      "**Exceptions in force**",
      "",
      "- mimir/ingester: no-downscale: zone a may have 2 replicas: INC-441, until 2026-09-01 10&#58;00 UTC, requested by anna",
      "",
    ]
  `);
});

it('lists the changed objects in no group, also if no pod restarts, and counts the omitted rows', async () => {
  const repository = new ScratchRepository('quick-start');
  const config = (count: number, value: string): void => {
    for (let index = 0; index < count; index += 1) {
      const metadata = `metadata: { name: config-${index}, namespace: shop }`;
      repository.write(`manifests/config-${index}.yaml`, `apiVersion: v1\nkind: ConfigMap\n${metadata}\ndata: { key${index}: ${value} }\n`);
    }
  };
  config(12, 'old');
  repository.commit('configuration');
  repository.branch('one', () => config(1, 'new'));
  repository.branch('all', () => config(12, 'new'));
  const shown = async (head: string, format: string) => {
    const words = ['review', '--base', 'main', '--head', head, '--policies', 'policies', '--manifests', 'manifests', '--width', '100'];
    return (await runInProcess([...words, '-o', format], { cwd: repository.root })).stdout;
  };
  const texts = [await shown('one', 'table'), await shown('one', 'markdown'), await shown('all', 'table')];
  repository.remove();
  expect([texts[0], texts[1]?.replace(/^<!--.*\n/, ''), texts[2]?.split('\n').slice(-3)]).toMatchInlineSnapshot(`
    [
      "Review  main..one   1 other object
    OBJECT    ConfigMap shop/config-0 changed: data.key0, in no group
    ",
      "### Rollout review: 1 other object

    **Objects in no group**

    - ConfigMap shop/config-0 changed: data.key0, in no group

    <sub>main..one</sub>
    ",
      [
        "OBJECT    ConfigMap shop/config-7 changed: data.key7, in no group",
        "OBJECT    and 2 more",
        "",
      ],
    ]
  `);
});

it('computes the tasks of a thread in their order, also while their code loads', async () => {
  const thread = new Worker('./dist/chunks/thread.mjs', { workerData: [] });
  const bundle = { policies: [], exceptions: [], groups: [] };
  const side = { bundle, manifests: [], agentNamespace: 'rollout-group' };
  const inputs = {
    policies: { sides: { before: side, after: side }, nowMs: 0, tests: { cases: [], tests: [] }, part: { index: 0, count: 1 } },
    plan: { ...bundle, policyDigest: '', nowMs: 0, current: [], desired: [], assumptions: defaultAssumptions },
  };
  const names = ['policies', 'plan', 'policies', 'plan'] as const;
  try {
    for (const name of names) thread.postMessage({ task: [name, inputs[name]], begun: new Int32Array(new SharedArrayBuffer(4)) });
    const outputs: string[] = [];
    for await (const [output] of on(thread, 'message')) {
      outputs.push('effects' in output ? 'policies' : 'plan');
      if (outputs.length === names.length) break;
    }
    expect(outputs).toEqual(names);
  } finally {
    await thread.terminate();
  }
});

it('gives the same review from threads as from one thread', async () => {
  const repository = new ScratchRepository('quick-start');
  const environments = ['staging', 'production'];
  const paths = ['policies', 'manifests'].flatMap((folder) =>
    readdirSync(`examples/quick-start/${folder}`).map((file) => `${folder}/${file}`),
  );
  const texts = paths.map((path) => ({ path, text: readFileSync(`examples/quick-start/${path}`, 'utf8') }));
  const writeGroups = (change: (text: string) => string): void => {
    for (const environment of environments) {
      for (let group = 0; group < 10; group += 1) {
        for (const { path, text } of texts) {
          const named = text.replaceAll(/\bcache\b/g, `cache-${group}`);
          repository.write(`${environment}/${path.replace('/', `/${group}-`)}`, change(named));
        }
      }
    }
  };
  writeGroups((text) => text);
  const entries = environments.map((name) => `  - { name: ${name}, policies: ${name}/policies, manifests: ${name}/manifests }\n`);
  repository.write('rollout-group.yaml', `environments:\n${entries.join('')}`);
  repository.commit('groups');
  repository.branch('changed', () =>
    writeGroups((text) => text.replace(/(image: [^:\s]+):\S+/g, '$1:9').replace('maxUnavailable: 2', 'maxUnavailable: 1')),
  );
  const words = ['review', '--base', 'main', '--head', 'changed', '--at', '2026-11-26T10:00:00Z', '-o', 'json'];
  try {
    const inThreads = runPlugin(words, { cwd: repository.root });
    // The sources have no file for a thread, so this review uses one thread.
    expect(inThreads).toEqual(await runInProcess(words, { cwd: repository.root }));
    expect(JSON.parse(inThreads.stdout).environments[1].plan.groups).toHaveLength(10);
  } finally {
    repository.remove();
  }
});

it('calls Git as often for many environments as for one, and reads a file of both revisions once', async () => {
  const repository = new ScratchRepository('quick-start');
  const entry = (name: string): string => `  - { name: ${name}, policies: ${name}/policies, manifests: ${name}/manifests }\n`;
  const names = ['staging', 'europe', 'america'];
  for (const name of names) {
    for (const folder of ['policies', 'manifests'])
      cpSync(`examples/quick-start/${folder}`, join(repository.root, name, folder), { recursive: true });
  }
  repository.write('rollout-group.yaml', `environments:\n${names.map(entry).join('')}`);
  repository.commit('environments');
  repository.branch('image', () => repository.replace('europe/manifests/cache-a.yaml', /image: \S+/g, 'image: cache:9'));
  const [log, bin, path] = [join(repository.root, 'git.log'), join(repository.root, 'bin'), String(process.env['PATH'])];
  repository.write('bin/git', `#!/bin/sh\necho "$@" >> ${log}\ntee -a ${log}.input | PATH=${path} git "$@"\n`);
  chmodSync(join(bin, 'git'), 0o755);
  const askedBy = async (...words: readonly string[]) => {
    const env = { PATH: `${bin}:${path}` };
    const { status } = await runInProcess(['review', '--base', 'main', '--head', 'image', ...words], { cwd: repository.root, env });
    const [commands = [], blobs = []] = [log, `${log}.input`].map((file) => readFileSync(file, 'utf8').split('\n').filter(Boolean));
    for (const file of [log, `${log}.input`]) rmSync(file);
    return { status, commandCount: commands.length, repeated: blobs.length - new Set(blobs).size };
  };
  const [all, one] = [await askedBy(), await askedBy('--environment', 'europe')];
  repository.remove();
  // The file rollout-group.yaml of both revisions is read before the paths are known.
  expect(all).toEqual({ status: 0, commandCount: one.commandCount, repeated: 1 });
});
