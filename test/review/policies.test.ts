// The semantic policy diff of the examples: each change of a policy is named with its direction, its place and its consequence.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { readPolicyFiles } from '../../plugin/policy-files.ts';
import { schemas } from '../../policies/schema/kinds.ts';
import type { PolicyReview } from '../../review/document.ts';
import { reviewPolicies } from '../../review/review.ts';
import type { Side } from '../../review/sides.ts';

interface File {
  readonly name: string;
  readonly text: string;
}

type Change = (file: File) => File | undefined;

const nowMs = Date.parse('2026-11-26T10:00:00Z');

function side(example: string, change: Change = (file) => file): Side {
  const root = `examples/${example}`;
  const names = ['policies', 'manifests'].flatMap((folder) => readdirSync(`${root}/${folder}`).map((name) => `${folder}/${name}`));
  const files = names.flatMap((name) => change({ name, text: readFileSync(`${root}/${name}`, 'utf8') }) ?? []);
  const { findings, resolution, loaded } = readPolicyFiles(files, { agentNamespace: 'rollout-group' });
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  return { bundle: resolution.bundle, manifests: loaded.manifests.map(({ value }) => value), agentNamespace: 'rollout-group' };
}

function replaced(from: string | RegExp, to: string): Change {
  return ({ name, text }) => ({ name, text: text.replaceAll(from, to) });
}

/** Each effect in a line, followed by its first three decisions. */
function lines({ effects }: PolicyReview): readonly string[] {
  return effects.flatMap(({ direction, cause, before, after, decisions }) => {
    const places = [before, after].map((side) => (side?.source?.file === undefined ? '-' : `${side.source.file}:${side.source.line}`));
    return [`${direction}: ${cause} (${places.join(', ')})`, ...decisions.slice(0, 3).map(({ text }) => `  ${text}`)];
  });
}

function review(example: string, change: Change): readonly string[] {
  return lines(reviewPolicies({ before: side(example), after: side(example, change) }, nowMs));
}

describe('a change of policies', () => {
  it('that shortens the time between zones and the delay lets zones shrink earlier', () => {
    expect(review('mimir-ingester', replaced('13h', '1h'))).toMatchInlineSnapshot(`
      [
        "loosened: the time between zones of mimir/ingester falls from 13h to 1h (policies/ingester.yaml:29, policies/ingester.yaml:29)",
        "  zone a may shrink 12h earlier after zone b shrank",
        "  zones b and c may shrink 12h earlier after zone a shrank",
        "loosened: the delay of a scale-down of mimir/ingester falls from 13h to 1h (policies/ingester.yaml:31, policies/ingester.yaml:31)",
        "  zone a may shrink 12h earlier after its pods prepared",
        "  zones b and c may shrink 12h earlier after their pods prepared",
      ]
    `);
  });

  it('that lengthens them lets zones shrink later', () => {
    const effects = reviewPolicies({ before: side('mimir-ingester', replaced('13h', '1h')), after: side('mimir-ingester') }, nowMs);
    expect(lines(effects)).toMatchInlineSnapshot(`
      [
        "tightened: the time between zones of mimir/ingester rises from 1h to 13h (policies/ingester.yaml:29, policies/ingester.yaml:29)",
        "  zone a may shrink 12h later after zone b shrank",
        "  zones b and c may shrink 12h later after zone a shrank",
        "tightened: the delay of a scale-down of mimir/ingester rises from 1h to 13h (policies/ingester.yaml:31, policies/ingester.yaml:31)",
        "  zone a may shrink 12h later after its pods prepared",
        "  zones b and c may shrink 12h later after their pods prepared",
      ]
    `);
  });

  it('that deletes the file of a policy removes its windows', () => {
    expect(review('mimir-ingester', (file) => (file.name.endsWith('calendar.yaml') ? undefined : file))).toMatchInlineSnapshot(`
      [
        "loosened: RolloutPolicy mimir/calendar is removed (policies/calendar.yaml:1, -)",
        "  pods may be replaced at Thu 2026-11-26 16:00 UTC and in 6 more cases (was: waits by window)",
        "  zone a may shrink at Fri 2026-12-18 17:00 UTC (was: waits by window)",
        "  the StatefulSet of zone a may be restarted at Fri 2026-12-18 17:00 UTC (was: on hold by window)",
      ]
    `);
  });

  it('that deletes the file of a group ends every protection', () => {
    expect(review('mimir-ingester', (file) => (file.name === 'policies/ingester.yaml' ? undefined : file))).toMatchInlineSnapshot(`
      [
        "loosened: RolloutGroup mimir/ingester is removed (policies/ingester.yaml:1, -)",
        "  the StatefulSet of zone a may be deleted (was: denied by no-delete)",
        "  zone a may be scaled down by one pod (was: denied by replicas-owned)",
        "  zone a may be scaled to 0 (was: denied by replicas-owned)",
      ]
    `);
  });

  it('that removes a member, a protection, a rule or a target is loosened', () => {
    expect([
      ...review('mimir-ingester', replaced('      - { name: c, statefulSet: ingester-zone-c, follows: b }\n', '')),
      ...review('mimir-ingester', replaced('noDelete: true', 'noDelete: false')),
      ...review('mimir-ingester', replaced('groups: [ingester]', 'groups: [other]')),
      ...review('consul', replaced(/ {4}- name: restarts-are-reviewed[\s\S]*?(?= {2}limits| {4}- name)/g, '')),
    ]).toMatchInlineSnapshot(`
      [
        "loosened: StatefulSet ingester-zone-c leaves mimir/ingester (policies/ingester.yaml:11, -)",
        "  the StatefulSet of zone c may be deleted (was: denied by no-delete)",
        "  zone c may be scaled down by one pod (was: denied by replicas-owned)",
        "  zone c may be scaled to 0 (was: denied by replicas-owned)",
        "loosened: the protection noDelete of mimir/ingester is removed (policies/ingester.yaml:44, -)",
        "  the StatefulSet of zone a may be deleted (was: denied by no-delete)",
        "  the StatefulSets of zones b and c may be deleted (was: denied by no-delete)",
        "loosened: RolloutPolicy mimir/calendar no longer applies to mimir/ingester (policies/calendar.yaml:1, -)",
        "  pods may be replaced at Thu 2026-11-26 16:00 UTC and in 6 more cases (was: waits by window)",
        "  zone a may shrink at Fri 2026-12-18 17:00 UTC (was: waits by window)",
        "  the StatefulSet of zone a may be restarted at Fri 2026-12-18 17:00 UTC (was: on hold by window)",
        "loosened: rule quorum/restarts-are-reviewed is removed (policies/quorum.yaml:22, -)",
        "  the StatefulSet of zone a may be restarted (was: needs approval by quorum/restarts-are-reviewed)",
        "  the StatefulSet of zone b may be restarted (was: needs approval by quorum/restarts-are-reviewed)",
        "  the StatefulSet of zone c may be restarted (was: needs approval by quorum/restarts-are-reviewed)",
      ]
    `);
  });

  it('that removes a leader lets its follower shrink first, and the reverse is the opposite', () => {
    const own = side('mimir-ingester', replaced(', follows: a }', ' }'));
    const order = (before: Side, after: Side): readonly string[] =>
      lines(reviewPolicies({ before, after }, nowMs)).filter((line) => / (?:follows|before zone) /.test(line));
    expect([...order(side('mimir-ingester'), own), ...order(own, side('mimir-ingester'))]).toMatchInlineSnapshot(`
      [
        "loosened: the setting follows of mimir/ingester is removed, which was a (policies/ingester.yaml:9, policies/ingester.yaml:9)",
        "  zone b may shrink before zone a (was: waits)",
        "tightened: the setting follows of mimir/ingester is added: a (policies/ingester.yaml:9, policies/ingester.yaml:9)",
        "  zone b may not shrink before zone a (waits; was: allowed)",
      ]
    `);
  });

  it('that accepts an approved plan instead of an approval is loosened, and the reverse is tightened', () => {
    const ruled = (effect: string): Side =>
      side('consul', ({ name, text }) => {
        const rule = `    - { name: as-reviewed, actions: [rollout], ${effect} }\n`;
        return { name, text: name === 'policies/quorum.yaml' ? text.replace('  rules:\n', `  rules:\n${rule}`) : text };
      });
    const changed = (before: string, after: string) => lines(reviewPolicies({ before: ruled(before), after: ruled(after) }, nowMs));
    const approval = 'effect: requireApproval, approval: { count: 1, from: [sre] }';
    const plan = 'effect: requireApprovedPlan, approval: { count: 1, from: [sre] }';
    const cause = 'rule quorum/as-reviewed changes';
    const effects = (before: string, after: string) =>
      changed(before, after).flatMap((line) => (line.startsWith(' ') ? [] : line.replace(/ \(.*/, '')));
    expect(effects(plan, 'effect: warn')).toEqual([`loosened: ${cause}`]);
    expect(effects('effect: warn', plan)).toEqual([`tightened: ${cause}`]);
    expect([...changed(approval, plan), ...changed(plan, approval)]).toMatchInlineSnapshot(`
      [
        "loosened: rule quorum/as-reviewed changes (policies/quorum.yaml:10, policies/quorum.yaml:10)",
        "  pods may be replaced with an approved plan and in 2 more cases (was: waits by quorum/as-reviewed)",
        "tightened: rule quorum/as-reviewed changes (policies/quorum.yaml:10, policies/quorum.yaml:10)",
        "  pods may not be replaced with an approved plan and in 2 more cases (waits by quorum/as-reviewed; was: allowed)",
      ]
    `);
  });

  it('of a soak is one effect, also if a case of a test no longer waits, and changes no approval', () => {
    const documents = parseAllDocuments(readFileSync('examples/quick-start/tests/cache.yaml', 'utf8'));
    const tests = documents.map((document) => schemas.PolicyTest.parse(document.toJS()));
    const changed = (from: string | RegExp, to: string) =>
      lines(
        reviewPolicies({ before: side('quick-start'), after: side('quick-start', replaced(from, to)) }, nowMs, {
          cases: [],
          tests,
        }),
      ).map((line) => line.replace(/ \(policies.*/, ''));
    expect(changed('soak: 15s', 'soak: 5s')).toEqual([
      'loosened: the soak time of shop/cache falls from 15s to 5s',
      '  pods may be replaced 10s earlier after wave canary, without a soak',
      '  the request of the case "the canary soaks for 15 seconds" may pass (was: waits by soak)',
    ]);
    expect(changed('soak: 15s', 'soak: 20s')).toEqual([
      'tightened: the soak time of shop/cache rises from 15s to 20s',
      '  pods may be replaced 5s later after wave canary, without a soak',
      '  the request of the case "the canary soaks for 15 seconds" may pass 5s later',
      '  the request of the case "the rest follows the approval, two pods at once" may not pass (waits by soak; was: allowed)',
    ]);
    expect(changed(/ *after: \{ soak: 15s \}\n/g, '').filter((line) => !line.startsWith(' '))).toEqual([
      'loosened: the setting waves.canary.after.soak of shop/cache falls from 15s to 0s',
    ]);
  });

  it('of the unavailable pods shows in a later zone of a wave, and what no question shows has the direction of its setting', () => {
    const changed = (from: string, to: string) =>
      review('quick-start', replaced(from, to)).map((line) => line.replace(/ \(policies.*/, ''));
    const more = [
      'loosened: the maximum of unavailable pods of shop/cache rises from 2 to 3',
      '  3 pods at once may be replaced instead of 2 after zone a of wave rest and in 1 more case',
    ];
    expect(changed('maxUnavailable: 2', 'maxUnavailable: 3')).toEqual(more);
    expect(changed('maxUnavailable: 2', 'maxUnavailable: 100%')).toEqual(more);
    expect(changed('progress: 1m', 'progress: 1h')).toEqual(['loosened: the setting deadlines.progress of shop/cache rises from 1m to 1h']);
    expect(changed('onFailure: pause', 'onFailure: rollback')).toEqual([
      'changed: the setting onFailure of shop/cache changes from pause to rollback',
    ]);
    expect(changed('pods: 1\n', 'pods: 2\n').filter((line) => /maximum|removed/.test(line))).toEqual([]);
  });

  it('that only formats, sorts or renames changes nothing', () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, part]) => [key, reversed(part)]),
      );
    };
    const respelled: Change = ({ name, text }) => {
      const documents = text.split(/^---$/m).map((one) => JSON.stringify(reversed(parse(one))));
      return {
        name: `x-${name.replace(/\//g, '-')}`,
        text: documents
          .reverse()
          .map((one) => stringify(JSON.parse(one), { indent: 4 }))
          .join('---\n'),
      };
    };
    for (const example of ['mimir-ingester', 'mimir-store-gateway', 'consul', 'kafka'])
      expect([example, ...review(example, respelled)]).toEqual([example]);
  });

  it('that adds an exception is loosened, with its reason and its end', () => {
    const without = side('mimir-store-gateway', (file) => (file.name.endsWith('exceptions.yaml') ? undefined : file));
    const atMs = Date.parse('2026-02-03T00:00:00Z');
    const withIt = side('mimir-store-gateway');
    expect([
      ...lines(reviewPolicies({ before: without, after: withIt }, atMs)),
      ...lines(reviewPolicies({ before: withIt, after: without }, atMs)),
      ...lines(reviewPolicies({ before: without, after: withIt }, nowMs)),
    ]).toMatchInlineSnapshot(`
      [
        "loosened: exception smaller-zone-c permits no-downscale in zone c from 2026-02-02 08:00 UTC until 2026-02-04 18:00 UTC (zone c was scaled up by mistake, see INC-2114) (-, policies/exceptions.yaml:7)",
        "tightened: exception smaller-zone-c no longer permits no-downscale in zone c from 2026-02-02 08:00 UTC until 2026-02-04 18:00 UTC (zone c was scaled up by mistake, see INC-2114) (policies/exceptions.yaml:7, -)",
      ]
    `);
  });
});
