// Formats times and durations as Go does, for messages that are the same as those of grafana/rollout-operator.

/** Formats an RFC 3339 time as Go prints a `time.Time`: `2026-01-15 12:00:00 +0000 UTC`. Fractions of a second have no trailing zeros. */
export function goTimeText(instant: string): string {
  const [, date, time, fraction = '', offset = ''] =
    /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})$/.exec(instant) ?? [];
  if (date === undefined) return instant;
  const digits = fraction.replace(/0+$/, '');
  const seconds = digits === '' ? time : `${time}.${digits}`;
  const zone = offset.replace(':', '');
  const isUtc = zone === 'Z' || zone === '+0000' || zone === '-0000';
  return isUtc ? `${date} ${seconds} +0000 UTC` : `${date} ${seconds} ${zone} ${zone}`;
}

/** Formats milliseconds as Go's `time.Duration` prints them: `12h0m0s`, `1m30s`, `1.5s`, `300ms`, `0s`. */
export function goDurationText(ms: number): string {
  if (ms === 0) return '0s';
  const sign = ms < 0 ? '-' : '';
  const size = Math.abs(ms);
  if (size < 1e-3) return `${sign}${decimal(size * 1e6)}ns`;
  if (size < 1) return `${sign}${decimal(size * 1e3)}µs`;
  if (size < 1000) return `${sign}${decimal(size)}ms`;
  const hours = Math.floor(size / 3_600_000);
  const minutes = Math.floor((size % 3_600_000) / 60_000);
  const seconds = `${decimal((size % 60_000) / 1000)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** Formats a number with at most 9 decimals, without trailing zeros. */
function decimal(value: number): string {
  return String(Number(value.toFixed(9)));
}
