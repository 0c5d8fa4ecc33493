// What a stream can show: its width, its characters and its colour; and the one place through which text leaves the program.
import type { Writable } from 'node:stream';
import type { OutputStream } from '../context.ts';
import { hasColour, painter } from './colour.ts';

/** Marks with a word beside them, and lines of charts. Same width in both sets. */
export interface Glyphs {
  readonly ok: string;
  readonly wait: string;
  readonly no: string;
  readonly skip: string;
  readonly unknown: string;
  readonly bullet: string;
  readonly arrow: string;
  readonly ellipsis: string;
  readonly vertical: string;
  readonly horizontal: string;
  readonly full: string;
  readonly half: string;
  readonly empty: string;
}

const unicode: Glyphs = {
  ok: '✓',
  wait: '◷',
  no: '✗',
  skip: '–',
  unknown: '?',
  bullet: '•',
  arrow: '→',
  ellipsis: '…',
  vertical: '│',
  horizontal: '─',
  full: '█',
  half: '▒',
  empty: '░',
};

const ascii: Glyphs = {
  ok: '+',
  wait: '~',
  no: 'x',
  skip: '-',
  unknown: '?',
  bullet: '*',
  arrow: '>',
  ellipsis: '.',
  vertical: '|',
  horizontal: '-',
  full: '#',
  half: '=',
  empty: '.',
};

export interface OutputSettings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly color?: 'always' | 'auto' | 'never';
  readonly ascii?: boolean;
  /** Columns given with --width; they hold for pipes too. */
  readonly width?: number;
}

/** Wraps a stream of the process. */
export function outputStream(
  stream: Writable & { readonly isTTY?: boolean; readonly columns?: number },
  settings: OutputSettings,
): OutputStream {
  const { env, width } = settings;
  const isTerminal = stream.isTTY === true;
  const colour = hasColour({ isTerminal, env, ...(settings.color === undefined ? {} : { flag: settings.color }) });
  return {
    write: (text) => {
      stream.write(withoutControls(text, colour));
    },
    raw: stream,
    isTerminal,
    // A terminal that does not say how wide it is gets the traditional width; a pipe has none.
    // Asked anew each time, since people change it.
    get columns() {
      return width ?? (isTerminal ? stream.columns || 80 : undefined);
    },
    paint: painter(colour),
    hasColour: colour,
    glyphs: settings.ascii === true || !isUtf8(env) ? ascii : unicode,
  };
}

/** Whether the locale says UTF-8, asked in the order of POSIX. Windows has no such variables and its terminals show Unicode. */
function isUtf8(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((value) => value !== undefined && value !== '');
  if (locale === undefined) return process.platform === 'win32';
  return /utf-?8/i.test(locale);
}

/** Control and direction characters, line and paragraph separators; not tab and line feed. */
const control = /(?![\t\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
/** What follows the escape character in a colour sequence. */
const colourSequence = /\[\d+(?:;\d+)*m/y;

/**
 * Text from files and clusters may hold control characters, which could move the cursor or rewrite what was printed: they are shown as JSON
 * writes them, which also keeps JSON output valid. Only colour sequences pass, and only when colour is on.
 */
export function withoutControls(text: string, colour: boolean): string {
  return text.replace(control, (character, offset: number) => {
    colourSequence.lastIndex = offset + 1;
    const isColour = colour && character.charCodeAt(0) === 0x1b && colourSequence.test(text);
    return isColour ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
