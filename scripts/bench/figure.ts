// Defines a measured figure with its bar and its floor, and the table that judges the figures.

export interface Figure {
  readonly what: string;
  readonly value: number;
  /** The promised maximum; undefined for a figure that is only shown. */
  readonly bar?: number;
  readonly unit: 'ms' | 'x' | 'MiB' | 'MiB/min' | '%' | 'requests' | 'pods' | 'waves' | 'times' | 'KiB' | 'characters';
  /** Text: the lowest possible value, or the parts of the figure. */
  readonly floor: string;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Returns the smallest value that this percentage of the values does not exceed; NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** Returns the milliseconds of one call. The result is used, so that the call is not optimised away. */
export function timed(call: () => unknown): number {
  const start = process.hrtime.bigint();
  if (call() === undefined) throw new Error('the measured call has no result');
  return Number(process.hrtime.bigint() - start) / 1e6;
}

/** Reports whether the figure stays below its bar times the slack. A figure that could not be measured does not. */
export function isKept({ value, bar }: Figure, slack: number): boolean {
  return bar === undefined || value <= bar * slack;
}

/** Returns a table of the figures in their order, with a verdict for each. */
export function figureTable(figures: readonly Figure[], slack: number): readonly string[] {
  const rows = figures.map((figure) => [
    figure.what,
    amount(figure, figure.value),
    figure.bar === undefined ? 'none' : `at most ${amount(figure, figure.bar * slack)}`,
    figure.bar === undefined ? '' : isKept(figure, slack) ? 'ok' : 'MISSED',
    figure.floor,
  ]);
  const header = ['figure', 'measured', 'bar', 'verdict', 'floor'];
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const counts: ReadonlySet<Figure['unit']> = new Set(['requests', 'pods', 'waves', 'times', 'characters']);

function amount({ unit }: Figure, value: number): string {
  const digits = !counts.has(unit) && (unit === 'x' || Math.abs(value) < 10) ? 2 : 0;
  return unit === '%' ? `${value.toFixed(1)} %` : `${value.toFixed(digits)} ${unit}`;
}
