// The log on standard error: one line per entry, logfmt or JSON, with the keys ts, level and msg first.
import { pino } from 'pino';
import type { Clock } from '../../cluster/env.ts';
import type { Log, LogFields } from '../env.ts';

export type LogFormat = 'logfmt' | 'json';
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

interface LogOptions {
  readonly format: LogFormat;
  /** Less is not written. */
  readonly level: LogLevel;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Receives whole lines with their line feed. */
  readonly write: (line: string) => void;
}

/** Longer values are cut off, so that a server response cannot fill the disk of a node. */
const longestValue = 4096;

/**
 * Creates a log without worker threads, so that no line is lost at the end of the process. Credentials in addresses and headers are
 * removed.
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
  const at =
    (one: LogLevel) =>
    (message: string, fields: LogFields = {}) =>
      logger[one](cleaned(fields), message);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Keys that every line has already. */
const ownKeys: ReadonlySet<string> = new Set(['ts', 'level', 'msg', 'time']);

function cleaned(fields: LogFields): Readonly<Record<string, string | number | boolean>> {
  const clean: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const name = ownKeys.has(key) ? `${key}_` : key;
    clean[name] = typeof value === 'string' ? withoutSecrets(cutOff(value)) : value;
  }
  return clean;
}

function cutOff(text: string): string {
  return text.length <= longestValue ? text : `${text.slice(0, longestValue)}... (${text.length - longestValue} characters more)`;
}

/** Removes credentials from the line. This is the last defence: the code that makes a message must not put credentials into it. */
function withoutSecrets(text: string): string {
  return text.replace(/(\w:\/\/)[^/\s@"]+@/g, '$1***@').replace(/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, '$1 ***');
}

type Line = Readonly<Record<string, unknown>>;

/** Puts what every line has before what only this one has. */
function ordered(line: string): Line {
  const { ts, level, msg, ...rest } = JSON.parse(line) as Line;
  return { ts, level, msg, ...rest };
}

function jsonLine(line: string): string {
  return `${visible(JSON.stringify(ordered(line)))}\n`;
}

function logfmtLine(line: string): string {
  const pairs = Object.entries(ordered(line)).map(([key, value]) => `${logfmtKey(key)}=${logfmtValue(value)}`);
  return `${pairs.join(' ')}\n`;
}

function logfmtKey(key: string): string {
  return visible(key.replace(/[\s="\p{Cc}]/gu, '_'));
}

/** Quotes a text with a blank, an equals sign, a quote or a control character of terminals. An empty text stays empty. */
function logfmtValue(value: unknown): string {
  const text = typeof value === 'string' ? value : String(value);
  return /^[^\s="\\\p{Cc}\p{Cf}]*$/u.test(text) ? text : visible(JSON.stringify(text));
}

/** Escapes the control characters that JSON leaves, such as those that change the direction of writing. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join(''),
  );
}
