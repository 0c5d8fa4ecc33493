// Draws a text timeline with one lane per zone. Each column shows its most important event.

import { spanText } from './plan/plan-text.ts';
import { shorten } from './plan/table-layout.ts';

export interface LaneSpan {
  readonly lane: string;
  readonly kind: 'roll' | 'scale' | 'soak' | 'wait' | 'fault';
  readonly startSeconds: number;
  readonly endSeconds: number;
}

interface TimelineOptions {
  /** Lanes in drawing order. A lane without a span stays empty. */
  readonly lanes: readonly string[];
  /** Width; undefined means 80 columns. */
  readonly columns: number | undefined;
}

/** The marks are ASCII, because they must look the same everywhere. */
const marks: Readonly<Record<LaneSpan['kind'], string>> = { roll: '#', scale: '%', soak: '=', wait: '.', fault: 'x' };
const words: Readonly<Record<LaneSpan['kind'], string>> = { roll: 'roll', scale: 'replicas', soak: 'soak', wait: 'wait', fault: 'fault' };
/** Drawing order; later kinds cover earlier ones. */
const order: readonly LaneSpan['kind'][] = ['wait', 'soak', 'scale', 'roll', 'fault'];

/** Returns the lanes, an axis and a legend of the used marks, or no line without spans. */
export function renderLanes(spans: readonly LaneSpan[], { lanes, columns = 80 }: TimelineOptions): readonly string[] {
  if (spans.length === 0) return [];
  const labelWidth = Math.min(24, Math.max(...lanes.map((lane) => lane.length)));
  const width = Math.max(20, Math.min(columns, 120) - labelWidth - 6);
  const endSeconds = Math.max(1, ...spans.map((span) => span.endSeconds));
  const column = (seconds: number) => Math.min(width - 1, Math.floor((seconds / endSeconds) * width));
  const lines = lanes.map((lane) => {
    const cells = Array.from({ length: width }, () => ' ');
    for (const kind of order) {
      for (const span of spans) {
        if (span.lane !== lane || span.kind !== kind) continue;
        const last = Math.max(column(span.startSeconds), column(span.endSeconds - 0.001));
        cells.fill(marks[kind], column(span.startSeconds), last + 1);
      }
    }
    return `  ${shorten(lane, labelWidth, '.').padEnd(labelWidth)} |${cells.join('')}|`;
  });
  const end = `+${spanText(endSeconds)}`;
  const used = order.filter((kind) => spans.some((span) => span.kind === kind));
  return [
    ...lines,
    `  ${' '.repeat(labelWidth)}  0${end.padStart(width - 1)}`,
    `  ${' '.repeat(labelWidth)}  ${used.map((kind) => `${marks[kind]} ${words[kind]}`).join('  ')}`,
  ];
}
