// Lanes of text: one per zone, time to the right, each column marked with the most telling thing that happens in it.

import { spanText } from './plan/plan-text.ts';
import { shorten } from './plan/table-layout.ts';

export interface LaneSpan {
  readonly lane: string;
  readonly kind: 'roll' | 'scale' | 'soak' | 'wait' | 'fault';
  readonly startSeconds: number;
  readonly endSeconds: number;
}

interface TimelineOptions {
  /** In the order in which they are drawn; lanes without a span stay empty. */
  readonly lanes: readonly string[];
  /** undefined draws as wide as a small terminal. */
  readonly columns: number | undefined;
}

/** ASCII alone: the marks are letters of a legend, and must look the same everywhere. */
const marks: Readonly<Record<LaneSpan['kind'], string>> = { roll: '#', scale: '%', soak: '=', wait: '.', fault: 'x' };
const words: Readonly<Record<LaneSpan['kind'], string>> = { roll: 'roll', scale: 'replicas', soak: 'soak', wait: 'wait', fault: 'fault' };
/** Later ones are drawn over earlier ones. */
const order: readonly LaneSpan['kind'][] = ['wait', 'soak', 'scale', 'roll', 'fault'];

/** The lanes, an axis and a legend of the marks that occur; nothing without spans. */
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
