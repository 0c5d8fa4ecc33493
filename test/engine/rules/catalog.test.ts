import { describe, expect, it } from 'vitest';
import { reasonOf } from '../../../engine/publish/reason.ts';
import { ruleCatalog, rulesMarkdown } from '../../../engine/rules/catalog.ts';
import { rollRules } from '../../../engine/rules/roll.ts';
import { scaleDownRules, scaleUpRules } from '../../../engine/rules/scale.ts';

const ids = ruleCatalog.map(({ id }) => id);

describe('the list of rules', () => {
  it('is sorted by id, without repetition, in kebab-case', () => {
    expect(ids).toEqual([...new Set(ids)].sort());
    expect(ids.filter((id) => !/^[a-z]+(-[a-z]+)*$/.test(id))).toEqual([]);
  });

  it('holds every rule that is asked of a roll or of a change of replicas', () => {
    const asked = [...rollRules, ...scaleUpRules, ...scaleDownRules].map(({ id }) => id);
    expect(asked.filter((id) => !ids.includes(id))).toEqual([]);
  });

  it('names for every rule the ways in which it answers, each once and in one order', () => {
    const order = ['ok', 'wait', 'no', 'skip', 'unknown'];
    const odd = ruleCatalog.filter(
      ({ outcomes }) =>
        outcomes.length === 0 || outcomes.join() !== order.filter((one) => outcomes.some((outcome) => outcome === one)).join(),
    );
    expect(odd).toEqual([]);
  });

  it('is a page with one row for each rule', () => {
    const page = rulesMarkdown();
    expect(page.startsWith('# Rules\n')).toBe(true);
    for (const { id, whenHeld } of ruleCatalog) expect(page.includes(`### \`${id}\`\n\n${whenHeld}\n`)).toBe(whenHeld !== undefined);
    expect(page.split('\n').filter((row) => row.startsWith('| `'))).toEqual(
      ruleCatalog.map(({ id, title, outcomes }) => `| \`${id}\` | \`${reasonOf(id)}\` | ${title} | ${outcomes.join(', ')} |`),
    );
  });
});
