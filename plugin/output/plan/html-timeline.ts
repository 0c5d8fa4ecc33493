// Draws the timeline of a group as SVG: zones as rows, waves as bands, p50 as bars and p90 as shades.
import type { GroupPlan, PlannedStep } from '../../../engine/plan/document.ts';
import { shorten } from '../../../policies/text/shorten.ts';
import { counted } from '../../../policies/wording.ts';
import { podsText } from '../pod-text.ts';
import { type Html, html, nothing } from './html-text.ts';
import * as words from './plan-text.ts';

const left = 132;
const right = 980;
const rowHeight = 34;
const barHeight = 18;
const top = 30;
const gateRow = 'gates';
const leastBar = 3;
/** An estimate of the average character width, in units of the SVG. By this estimate labels are placed or left out. */
const characterWidth = 6.6;

interface Scale {
  readonly x: (seconds: number) => number;
  readonly endSeconds: number;
  readonly rows: ReadonlyMap<string, number>;
  readonly bottom: number;
}

/** Returns an SVG element, or nothing if the group has no steps. `id` distinguishes the charts of a page. */
export function timelineSvg(group: GroupPlan, id: string): Html {
  const steps = group.waves.flatMap((wave) => wave.steps);
  if (steps.length === 0) return nothing;
  const scale = scaleOf(group, steps);
  const titles = words.waveTitles(group);
  const height = scale.bottom + 34;
  const what = `Timeline of ${group.namespace}/${group.group}: ${words.totalsText(group.totals)}`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Timeline, scrolls sideways"><svg class="chart wide" viewBox="0 0 1000 ${height}" role="img" aria-labelledby="${id}-t">
<title id="${id}-t">${what} The table of steps says the same.</title>
${group.waves.map((wave, index) => waveBand(titles[index] ?? wave.name, index, wave.steps, scale))}
${axis(scale)}
${rowLines(scale)}
${steps.map((step) => lateShade(step, scale))}
${[...steps.filter(isSpan), ...steps.filter((step) => !isSpan(step))].map((step) => stepMark(step, scale))}
${blockedLine(group, scale)}
</svg></div>`;
}

function scaleOf(group: GroupPlan, steps: readonly PlannedStep[]): Scale {
  const hasGates = steps.some((step) => !isZoneStep(step));
  const names = [...group.zones.map(({ zone }) => zone), ...(hasGates ? [gateRow] : [])];
  const rows = new Map(names.map((name, index) => [name, top + index * rowHeight]));
  const endSeconds = Math.max(1, ...steps.map((step) => step.startSeconds + Math.max(step.p50Seconds ?? 0, step.p90Seconds ?? 0)));
  return {
    x: (seconds) => left + ((right - left) * Math.min(seconds, endSeconds)) / endSeconds,
    endSeconds,
    rows,
    bottom: top + names.length * rowHeight,
  };
}

function isZoneStep(step: PlannedStep): boolean {
  return step.zone !== undefined && step.kind !== 'soak' && step.kind !== 'check' && step.kind !== 'approval';
}

/** Reports whether the step is a soak or a wait. The shape of such a step is drawn first, because it could cover other shapes. */
function isSpan(step: PlannedStep): boolean {
  return step.kind === 'soak' || step.kind === 'wait';
}

function rowOf(step: PlannedStep, scale: Scale): number | undefined {
  return scale.rows.get(isZoneStep(step) ? (step.zone ?? '') : gateRow);
}

function waveBand(label: string, index: number, steps: readonly PlannedStep[], scale: Scale): Html {
  if (steps.length === 0) return nothing;
  const start = scale.x(Math.min(...steps.map((step) => step.startSeconds)));
  const end = scale.x(Math.max(...steps.map((step) => step.startSeconds + (step.p50Seconds ?? 0))));
  const width = Math.max(end - start, leastBar);
  const shown = [label, ...(/^\d+(?= )/.exec(label) ?? [])].find((text) => text.length * characterWidth < width - 6);
  const band = index % 2 === 0 ? html`<rect class="band" x="${start}" y="6" width="${width}" height="${scale.bottom - 6}"/>` : nothing;
  const text = shown === undefined ? nothing : html`<text class="small" x="${start + 4}" y="20">${shown}</text>`;
  return html`<g><title>wave ${label}</title>${band}<line class="edge" x1="${start}" y1="6" x2="${start}" y2="${scale.bottom}"/>${text}</g>\n`;
}

const tickSeconds = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];

function axis({ x, endSeconds, bottom }: Scale): Html {
  const every = tickSeconds.find((seconds) => endSeconds / seconds <= 10) ?? 31_536_000;
  const ticks = Array.from({ length: Math.floor(endSeconds / every) + 1 }, (_, index) => index * every);
  const marks = ticks.map(
    (seconds) =>
      html`<line class="grid" x1="${x(seconds)}" y1="${bottom}" x2="${x(seconds)}" y2="${bottom + 5}"/><text class="small" text-anchor="middle" x="${x(seconds)}" y="${bottom + 18}">${seconds === 0 ? '0' : `+${words.spanText(seconds)}`}</text>\n`,
  );
  return html`<line class="grid" x1="${left}" y1="${bottom}" x2="${right}" y2="${bottom}"/>\n${marks}`;
}

function rowLines({ rows }: Scale): readonly Html[] {
  return [...rows].map(([name, y]) => {
    const label = html`<text text-anchor="end" x="${left - 12}" y="${y + rowHeight / 2 + 4}">${shorten(name, 18, '…')}<title>${name}</title></text>`;
    return html`<line class="row" x1="${left}" y1="${y + rowHeight / 2}" x2="${right}" y2="${y + rowHeight / 2}"/>${label}\n`;
  });
}

/** Returns the shape between p50 and p90 of a step. The chart starts the next step at p50. */
function lateShade(step: PlannedStep, scale: Scale): Html {
  const y = rowOf(step, scale);
  const { p50Seconds = 0, p90Seconds = 0, startSeconds } = step;
  if (y === undefined || p90Seconds <= p50Seconds || !(step.kind === 'roll' || step.kind === 'scaleUp' || step.kind === 'scaleDown'))
    return nothing;
  const start = scale.x(startSeconds + p50Seconds);
  const width = scale.x(startSeconds + p90Seconds) - start;
  return html`<rect class="${step.kind === 'roll' ? 'roll' : 'scale'} late" x="${start}" y="${y + (rowHeight - barHeight) / 2 + 4}" width="${width}" height="${barHeight - 8}"/>\n`;
}

function stepMark(step: PlannedStep, scale: Scale): Html {
  const rowTop = rowOf(step, scale);
  if (rowTop === undefined) return nothing;
  const x = scale.x(step.startSeconds);
  const width = Math.max(leastBar, scale.x(step.startSeconds + (step.p50Seconds ?? 0)) - x);
  const y = rowTop + (rowHeight - barHeight) / 2;
  return html`<g><title>${stepTitle(step)}</title>${shapeOf(step, x, y, width)}</g>\n`;
}

function shapeOf(step: PlannedStep, x: number, y: number, width: number): Html {
  switch (step.kind) {
    case 'roll':
      return html`<rect class="roll" x="${x}" y="${y}" width="${width}" height="${barHeight}" rx="2"/>${inside(podsText(step.pods), x, y, width)}`;
    case 'scaleUp':
    case 'scaleDown':
      return html`<rect class="scale" x="${x}" y="${y}" width="${width}" height="${barHeight}" rx="2"/>${labelNextTo(`${step.from ?? ''}→${step.to ?? ''}`, x, y, width)}`;
    case 'soak':
      return html`<rect class="soak" fill="url(#hatch)" x="${x}" y="${y}" width="${width}" height="${barHeight}"/>`;
    case 'check':
      return html`<rect class="check" fill="url(#dots)" x="${x}" y="${y + 4}" width="${width}" height="${barHeight - 8}" rx="2"/>`;
    case 'approval':
      return html`<path class="person" d="M${x} ${y - 1}l${barHeight / 2 + 1} ${barHeight / 2 + 1}l-${barHeight / 2 + 1} ${barHeight / 2 + 1}l-${barHeight / 2 + 1} -${barHeight / 2 + 1}z"/>`;
    case 'prepare':
      return html`<circle class="person" cx="${x}" cy="${y + barHeight / 2}" r="5"/>`;
    case 'wait':
      return html`<rect class="wait" x="${x}" y="${y + 3}" width="${width}" height="${barHeight - 6}" rx="2"/>`;
  }
}

function inside(text: string, x: number, y: number, width: number): Html {
  if (text === '' || text.length * characterWidth > width - 8) return nothing;
  return html`<text class="inside" x="${x + 5}" y="${y + 13}">${text}</text>`;
}

function labelNextTo(text: string, x: number, y: number, width: number): Html {
  const end = x + width + 4;
  const isNearEdge = end + text.length * characterWidth > right + 16;
  return html`<text class="small" text-anchor="${isNearEdge ? 'end' : 'start'}" x="${isNearEdge ? x - 4 : end}" y="${y + 13}">${text}</text>`;
}

function stepTitle(step: PlannedStep): string {
  const count = words.stepPodCount(step);
  return [
    words.stepText(step),
    ...(count === undefined ? [] : [counted(count, 'pod')]),
    ...(step.atOnce === undefined ? [] : [`at most ${step.atOnce} at once`]),
    `from +${words.spanText(step.startSeconds)}`,
    step.p50Seconds === undefined ? 'until approved' : `p50 ${words.spanText(step.p50Seconds)}, p90 ${words.spanText(step.p90Seconds)}`,
  ].join(', ');
}

function blockedLine(group: GroupPlan, scale: Scale): Html {
  const [first] = group.waits;
  if (first === undefined) return nothing;
  const x = right + 6;
  return html`<g><title>blocked by ${first.rule}: ${words.factText(first)}</title><line class="held" x1="${x}" y1="6" x2="${x}" y2="${scale.bottom}"/><text class="small" text-anchor="end" x="${x - 5}" y="16">blocked by ${shorten(first.rule, 40, '…')}</text></g>`;
}

/** The patterns that all charts of a page share. */
export const timelinePatterns: Html = html`<svg width="0" height="0" aria-hidden="true" class="chart shared" focusable="false"><defs>
<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="7"/></pattern>
<pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse"><circle class="dots" cx="3" cy="3" r="1.7"/></pattern>
</defs></svg>`;

const legendShapes: readonly (readonly [string, Html])[] = [
  ['replace pods, labelled with their ordinals', html`<rect class="roll" width="26" height="12" rx="2"/>`],
  ['up to p90', html`<rect class="roll late" y="3" width="26" height="6"/>`],
  ['change replicas', html`<rect class="scale" width="26" height="12" rx="2"/>`],
  ['soak', html`<rect class="soak" fill="url(#hatch)" x="1" y="1" width="24" height="10"/>`],
  ['gate', html`<rect class="check" fill="url(#dots)" x="1" y="1" width="24" height="10" rx="2"/>`],
  ['wait', html`<rect class="wait" x="1" y="1" width="24" height="10" rx="2"/>`],
  ['prepare pods', html`<circle class="person" cx="13" cy="6" r="5"/>`],
  ['approval, duration unknown', html`<path class="person" d="M13 0l6 6l-6 6l-6 -6z"/>`],
];

export const timelineLegend: Html = html`<ul class="legend" aria-label="Legend">${legendShapes.map(([word, shape]) => html`<li><svg class="chart" viewBox="0 0 26 12" aria-hidden="true">${shape}</svg>${word}</li>`)}</ul>`;
