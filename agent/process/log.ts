// Writes log entries as lines of logfmt or JSON. Each line starts with the keys ts, level and msg.
import { pino } from 'pino';
import type { Clock } from '../../cluster/env.ts';
import type { Log, LogFields } from '../env.ts';

export type LogFormat = 'logfmt' | 'json';
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

interface LogOptions {
  readonly format: LogFormat;
  /** Entries below this level are not written. */
  readonly level: LogLevel;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Receives one complete line with its line feed. */
  readonly write: (line: string) => void;
}

/** The most characters of a value. The rest is cut off, so that the answer of a server cannot fill the disk of a node. */
const maxValueLength = 4096;

/**
 * Creates a log. It writes without worker threads, so that no line is lost when the process ends. Credentials in URLs and in
 * Authorization headers are removed.
 */
export function createLog({ format, level, clock, write }: LogOptions): Log {
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'msg',
      timestamp: () => `,"ts":"${new Date(clock.nowMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => write(format === 'json' ? jsonLine(line) : logfmtLine(line)) },
  );
  const logAt =
    (entryLevel: LogLevel) =>
    (message: string, fields: LogFields = {}) =>
      logger[entryLevel](cleaned(fields), message);
  return { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
}

/** The keys that no field may have: the log writes `ts`, `level` and `msg`, and `time` would look like the time of the entry. */
const reservedKeys: ReadonlySet<string> = new Set(['ts', 'level', 'msg', 'time']);

function cleaned(fields: LogFields): Readonly<Record<string, string | number | boolean>> {
  const clean: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    // A field with a reserved key gets an underscore at its end.
    const name = reservedKeys.has(key) ? `${key}_` : key;
    clean[name] = typeof value === 'string' ? withoutSecrets(cutOff(value)) : value;
  }
  return clean;
}

function cutOff(text: string): string {
  return text.length <= maxValueLength ? text : `${text.slice(0, maxValueLength)}... (${text.length - maxValueLength} characters more)`;
}

/** Replaces credentials with `***`. This is only the last defence: no message should contain credentials at all. */
function withoutSecrets(text: string): string {
  return text.replace(/(\w:\/\/)[^/\s@"]+@/g, '$1***@').replace(/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, '$1 ***');
}

type Line = Readonly<Record<string, unknown>>;

function withKeysInOrder(line: string): Line {
  const { ts, level, msg, ...rest } = JSON.parse(line) as Line;
  return { ts, level, msg, ...rest };
}

function jsonLine(line: string): string {
  return `${withEscapes(JSON.stringify(withKeysInOrder(line)))}\n`;
}

function logfmtLine(line: string): string {
  const pairs = Object.entries(withKeysInOrder(line)).map(([key, value]) => `${logfmtKey(key)}=${logfmtValue(value)}`);
  return `${pairs.join(' ')}\n`;
}

function logfmtKey(key: string): string {
  return withEscapes(key.replace(/[\s="\p{Cc}]/gu, '_'));
}

/** Quotes a text with a space, an equals sign, a quote, a backslash or a control character. An empty text gets no quotes. */
function logfmtValue(value: unknown): string {
  const text = typeof value === 'string' ? value : String(value);
  return /^[^\s="\\\p{Cc}\p{Cf}]*$/u.test(text) ? text : withEscapes(JSON.stringify(text));
}

/** Escapes control characters that JSON does not escape, such as those that reverse the text direction in a terminal. */
function withEscapes(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join(''),
  );
}
