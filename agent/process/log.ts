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

/** A log without worker threads, so that nothing is lost when the process ends. Credentials in addresses and headers are struck out. */
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

/** The last net only: credentials are kept out of messages where they are made. */
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

/** Quoted when it holds a blank, an equals sign, a quote or anything that a terminal would act on; empty stays empty. */
function logfmtValue(value: unknown): string {
  const text = typeof value === 'string' ? value : String(value);
  return /^[^\s="\\\p{Cc}\p{Cf}]*$/u.test(text) ? text : visible(JSON.stringify(text));
}

/** JSON leaves some control characters as they are, among them those that turn the direction of writing. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join(''),
  );
}
