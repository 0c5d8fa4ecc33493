// The verb review on a change without its approved plan, with it, and with the plan of another change: what a terminal says of it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const repository = new ScratchRepository('quick-start');
const plans = mkdtempSync(join(tmpdir(), 'plans-'));

const reviewed = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: reviewed, namespace: shop }
spec:
  targets: { all: true }
  rules:
    - name: as-approved
      actions: [rollout]
      effect: requireApprovedPlan
      message: a release manager reads each plan
      approval: { count: 1, from: [release-managers] }
`;

async function review(head: string, ...words: readonly string[]): Promise<string> {
  const dirs = ['--policies', 'policies', '--manifests', 'manifests'];
  return (await runInProcess(['review', '--base', 'main', '--head', head, ...dirs, ...words], { cwd: repository.root })).stdout;
}

/** Commits a branch from another one. */
function commit(name: string, from: string, change: () => void): void {
  repository.git('checkout', '--quiet', '-b', name, from);
  change();
  repository.commit(name);
}

function setImage(version: string): void {
  for (const zone of ['a', 'b', 'c']) repository.replace(`manifests/cache-${zone}.yaml`, /image: (\S+):\S+/g, `image: $1:${version}`);
}

/** Writes the annotations of the file that `review --out` wrote into the manifests. */
function annotate(): void {
  for (const document of parseAllDocuments(readFileSync(join(plans, 'default.yaml'), 'utf8'))) {
    const { metadata } = document.toJS();
    repository.replace(
      `manifests/${metadata.name}.yaml`,
      /^metadata:\n/gm,
      `metadata:\n  ${stringify({ annotations: metadata.annotations }, { lineWidth: 0 }).trim().replace('\n', '\n  ')}\n`,
    );
  }
}

beforeAll(async () => {
  repository.write('policies/reviewed.yaml', reviewed);
  repository.commit('reviewed');
  commit('unplanned', 'main', () => setImage('9.0.0'));
  await review('unplanned', '--out', plans);
  commit('planned', 'unplanned', annotate);
  commit('stale', 'planned', () => setImage('9.1.0'));
  commit('unruled', 'stale', () => rmSync(join(repository.root, 'policies/reviewed.yaml')));
});

afterAll(() => {
  repository.remove();
  rmSync(plans, { recursive: true });
});

it('names the approval that a rule asks for, and how the rollout differs from its approved plan', async () => {
  const shown = async (head: string) => {
    const text = (await review(head)).replaceAll(/plan [0-9a-f]{16}/g, 'plan ID');
    return text.split('\n').filter((line) => /^(?:APPROVAL|RISKS)/.test(line));
  };
  expect({
    unplanned: await shown('unplanned'),
    planned: await shown('planned'),
    stale: await shown('stale'),
    unruled: await shown('unruled'),
  }).toMatchInlineSnapshot(`
    {
      "planned": [],
      "stale": [
        "APPROVAL reviewed/as-approved: a release manager reads each plan; the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; the pod template of zone c is not the approved one; 0 of 1 approvals from release-managers (policies/reviewed.yaml:7:7)",
        "RISKS    RG5020 warning  the rollout differs from its approved plan ID: the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; the pod template of zone c is not the approved one",
      ],
      "unplanned": [
        "APPROVAL reviewed/as-approved: a release manager reads each plan; no StatefulSet names an approved plan; 0 of 1 approvals from release-managers (policies/reviewed.yaml:7:7)",
      ],
      "unruled": [
        "RISKS    RG5020 warning  the rollout differs from its approved plan ID: the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; the pod template of zone c is not the approved one; RolloutPolicy shop/reviewed was removed after the review",
      ],
    }
  `);
});
