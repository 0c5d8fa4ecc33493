// Parses and formats instants: RFC 3339 with an explicit offset.

const pattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** Returns milliseconds since 1970-01-01T00:00:00Z; undefined for text without an offset, a day that does not exist, and other text. */
export function instantMs(text: string): number | undefined {
  if (!pattern.test(text)) return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return undefined;
  // Date.parse reads 30 February as 2 March, so the day must be the same after formatting.
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return day.toISOString().startsWith(text.slice(0, 10)) ? ms : undefined;
}

/** Formats a time as RFC 3339 in UTC, with milliseconds only if they are not 0; undefined outside the years 0 to 9999. */
export function instantText(ms: number): string | undefined {
  if (!(ms >= -62_167_219_200_000 && ms < 253_402_300_800_000)) return undefined;
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** Returns the time with minutes: `2026-11-02 09:00 UTC`. */
export function minuteText(ms: number): string {
  return `${(instantText(ms) ?? '').slice(0, 16).replace('T', ' ')} UTC`;
}

/** Returns the time in whole seconds, such as `2026-08-22T12:31:04Z`. */
export function secondText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** The greatest distance of a JavaScript date from 1970 (ECMAScript, Time Values), in milliseconds. */
const greatestMs = 8_640_000_000_000_000;

/** Formats a time as RFC 3339 in UTC with milliseconds. A number beyond the range of dates becomes the nearest date. */
export function preciseText(ms: number): string {
  return new Date(Math.max(-greatestMs, Math.min(ms, greatestMs))).toISOString();
}
