import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { GroupPlan } from '../../engine/plan/document.ts';
import { renderPlanHtml } from '../../plugin/output/plan/html.ts';
import { html, htmlTable } from '../../plugin/output/plan/html-text.ts';
import { timelineSvg } from '../../plugin/output/plan/html-timeline.ts';
import { blocked, ingester, mirrorDownscale, planOf, refusedDownscale, unchanged } from './plan-kit.ts';

const attack = `"><script>alert('x')</script>\u202e`;

function hostile(): GroupPlan {
  const result = { rule: attack, outcome: 'no', fact: attack, limit: attack, source: { file: attack, line: 1 } } as const;
  return {
    ...ingester(),
    namespace: attack,
    group: attack,
    changes: [{ kind: 'template', zones: [attack], field: attack, before: attack, after: { a: attack }, consequence: 'none' }],
    waves: [
      {
        name: attack,
        steps: [{ kind: 'roll', zone: attack, pods: [attack], waitsFor: attack, startSeconds: 0, p50Seconds: 9, rules: [result] }],
      },
    ],
    refused: [{ what: attack, message: attack, results: [result] }],
    waits: [result],
    zones: [{ zone: attack, statefulSet: attack, replicasBefore: 1, replicasAfter: 1, restarts: 1 }],
  };
}

const pages = {
  rollout: renderPlanHtml(planOf([ingester()])),
  mixed: renderPlanHtml(
    planOf([unchanged('compactor'), ingester(), blocked(), refusedDownscale(), mirrorDownscale()], { startsAt: '2026-11-18T17:20:00Z' }),
  ),
  hostile: renderPlanHtml(planOf([hostile(), hostile()])),
  empty: renderPlanHtml(planOf([])),
};

describe('the page of a plan', () => {
  it.each(Object.entries(pages))('is one file without scripts and external files: %s', (_, page) => {
    expect(
      page.match(/<(script|link|img|iframe|object|embed|base|form|input)\b|\son\w+=|\sstyle=|@import|(?:src|srcset|action|xlink:href)=/gi),
    ).toBeNull();
    expect(
      [...page.matchAll(/\b(?:href="|url\()([^")]*)/g)].map(([, target]) => target).filter((target) => !/^#[\w-]+$/.test(target ?? '')),
    ).toEqual([]);
  });

  it('allows only its own style', () => {
    const style = /<style>([\s\S]*)<\/style>/.exec(pages.rollout)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(pages.rollout).toContain(`content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'"`);
  });

  it.each(Object.entries(pages))('closes every element that it opens: %s', (_, page) => {
    expect(unbalanced(page)).toEqual([]);
  });

  it('escapes foreign text', () => {
    expect(pages.hostile).not.toContain("alert('x')</script>");
    expect(pages.hostile).not.toContain('\u202e');
    expect(pages.hostile).toContain('&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\\u202e');
  });

  it('has every anchor once and links only to those', () => {
    const ids = [...pages.mixed.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, target] of pages.mixed.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(target);
  });

  it('names every outcome', () => {
    for (const word of [
      'blocked',
      'waits',
      'completes',
      'Without changes',
      'Denied: scale down zone-b from 3 to 2',
      'blocked by stateful-safety/business-hours',
    ]) {
      expect(pages.mixed).toContain(word);
    }
  });

  it('unfolds all of a few groups, and of many only those that need attention', () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ ...ingester(), group: `group-${index}` }));
    const open = (page: string) => page.match(/<details class="group" id="[^"]+" open>/g)?.length ?? 0;
    expect(open(pages.mixed)).toBe(4);
    expect(open(renderPlanHtml(planOf([...many, refusedDownscale()])))).toBe(1);
  });
});

describe('the timeline of a group', () => {
  it('has one row per zone, one for gates, and a tooltip for every step', () => {
    const svg = timelineSvg(ingester(), 'g').markup;
    expect([...svg.matchAll(/text-anchor="end"[^>]*>([^<]+)</g)].map(([, label]) => label)).toEqual([
      'zone-a',
      'zone-b',
      'zone-c',
      'gates',
    ]);
    expect([...svg.matchAll(/<g><title>([^<]+)<\/title>/g)].map(([, title]) => title)).toEqual([
      'wave 1 canary',
      'wave 2 zone-a',
      'wave 3 rest',
      'soak, from +1m30s, p50 30m, p90 30m',
      'soak, from +38m, p50 1h, p90 1h',
      'roll zone-a-19, 1 pod, at most 5 at once, from +0s, p50 1m30s, p90 3m',
      'check ingest-errors, from +1m30s, p50 7m, p90 7m',
      'roll zone-a 18..0, 19 pods, at most 5 at once, from +32m, p50 6m, p90 12m',
      'approve 1 of oncall, from +1h38m, until approved',
      'roll zone-b 19..0, 20 pods, at most 5 at once, from +1h38m, p50 6m, p90 12m',
      'roll zone-c 19..0, 20 pods, at most 5 at once, from +1h44m, p50 6m, p90 12m',
    ]);
  });

  it('draws time to the right and stays inside its frame', () => {
    for (const group of [ingester(), mirrorDownscale(), blocked()]) {
      const bars = [
        ...timelineSvg(group, 'g').markup.matchAll(/<rect class="(?:roll|scale|soak|check|wait)[^>]* x="([\d.]+)"[^>]* width="([\d.]+)"/g),
      ];
      expect(bars.length).toBeGreaterThan(2);
      for (const [, x, width] of bars) {
        expect(Number(x)).toBeGreaterThanOrEqual(132);
        expect(Number(x) + Number(width)).toBeLessThanOrEqual(984);
      }
    }
  });

  it('is omitted if no step changes a pod', () => {
    expect(timelineSvg(refusedDownscale(), 'g').markup).toBe('');
  });
});

describe('HTML from templates', () => {
  it('escapes text and keeps markup', () => {
    expect(html`<a title="${'"&\''}">${html`<b>${'<'}</b>`}${[html`1`, html`2`]}${0.123}</a>`.markup).toBe(
      '<a title="&quot;&amp;&#39;"><b>&lt;</b>120.12</a>',
    );
  });

  it('makes tables with marked columns', () => {
    expect(htmlTable(['a'], [['<']], [0]).markup).toContain('<td class="number">&lt;</td>');
  });
});

/** Elements that are opened and not closed, or closed and not opened. */
function unbalanced(page: string): readonly string[] {
  const stack: string[] = [];
  const wrong: string[] = [];
  for (const [, close, name = '', rest = ''] of page
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .matchAll(/<(\/?)([a-z][\w]*)((?:"[^"]*"|[^">])*)>/gi)) {
    if (['meta', 'br'].includes(name) || rest.endsWith('/')) continue;
    if (close === '') stack.push(name);
    else if (stack.pop() !== name) wrong.push(name);
  }
  return [...wrong, ...stack];
}
