// A measured figure beside its bar and its floor, and the table that judges them.

export interface Figure {
  readonly what: string;
  readonly value: number;
  /** At most this; undefined for what is only shown. */
  readonly bar?: number;
  readonly unit: 'ms' | 'x' | 'MiB' | 'MiB/min' | '%' | 'requests' | 'pods' | 'waves' | 'times' | 'KiB' | 'characters';
  /** What cannot be gone below, or what the figure is made of. */
  readonly floor: string;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The smallest value that so many per cent of the values do not exceed; NaN of none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** Milliseconds of one call; the result is used, so that nothing is optimised away. */
export function timed(call: () => unknown): number {
  const start = process.hrtime.bigint();
  if (call() === undefined) throw new Error('the measured call has no result');
  return Number(process.hrtime.bigint() - start) / 1e6;
}

/** Whether the bar, multiplied by the slack, is kept. What could not be measured keeps none. */
export function isKept({ value, bar }: Figure, slack: number): boolean {
  return bar === undefined || value <= bar * slack;
}

/** The figures as lines of a table, in their order, with a verdict each. */
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
