// Wraps an output stream with its width, characters and colour. Results and messages of commands go through such a stream.
import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import type { OutputStream } from '../context.ts';

const unicode = { ok: '✓', wait: '◷', no: '✗', bullet: '•', arrow: '→', ellipsis: '…', full: '█', half: '▒', empty: '░' };
const ascii = { ok: '+', wait: '~', no: 'x', bullet: '*', arrow: '>', ellipsis: '.', full: '#', half: '=', empty: '.' };

/** The symbols of tables and charts. A word always accompanies a symbol. Both sets have the same width. */
export type Glyphs = Readonly<typeof unicode>;

export interface OutputSettings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly color?: 'always' | 'auto' | 'never';
  readonly ascii?: boolean;
  /** The value of --width, which applies to pipes too. */
  readonly width?: number;
}

export function outputStream(
  stream: Writable & { readonly isTTY?: boolean; readonly columns?: number },
  settings: OutputSettings,
): OutputStream {
  const { env, width } = settings;
  const isTerminal = stream.isTTY === true;
  const colour = hasColour({ ...settings, isTerminal });
  return {
    write: (text) => {
      stream.write(withoutControls(text, colour));
    },
    raw: stream,
    isTerminal,
    // A terminal of unknown width gets 80 columns; a pipe has no width.
    // The width is read each time, because users resize terminals.
    get columns() {
      return width ?? (isTerminal ? stream.columns || 80 : undefined);
    },
    paint: painter(colour),
    hasColour: colour,
    glyphs: settings.ascii === true || !isUtf8(env) ? ascii : unicode,
  };
}

/** Reports whether the first locale variable that is set names UTF-8. Windows terminals show Unicode without these variables. */
function isUtf8(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((value) => value !== undefined && value !== '');
  if (locale === undefined) return process.platform === 'win32';
  return /utf-?8/i.test(locale);
}

/** Matches control and direction characters, line and paragraph separators, but not tab and line feed. */
const control = /(?![\t\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const colourSequence = /\[\d+(?:;\d+)*m/y;

/** Replaces control characters, which files and clusters may contain, with `\u` and four digits. Keeps colour sequences if colour is on. */
export function withoutControls(text: string, colour: boolean): string {
  return text.replace(control, (character, offset: number) => {
    colourSequence.lastIndex = offset + 1;
    const isColour = colour && character.charCodeAt(0) === 0x1b && colourSequence.test(text);
    return isColour ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The styles use only the 16 colours that follow the palette of the terminal, light or dark. */
export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'underline';

/** Styles text if colour is on; otherwise returns the text unchanged. */
export type Paint = (style: Style, text: string) => string;

/** Reports whether the output has colour. --color decides first, then NO_COLOR (https://no-color.org), FORCE_COLOR and the terminal. */
export function hasColour({
  isTerminal,
  env,
  color = 'auto',
}: Pick<OutputSettings, 'env' | 'color'> & { readonly isTerminal: boolean }): boolean {
  if (color !== 'auto') return color === 'always';
  if (isSet(env['NO_COLOR'])) return false;
  const forced = env['FORCE_COLOR'];
  if (isSet(forced)) return forced !== '0' && forced !== 'false';
  return isTerminal && env['TERM'] !== 'dumb';
}

/** Returns the styles of text that goes to a pipe or a file. */
export function pipePaint(env: OutputSettings['env']): Paint {
  return painter(hasColour({ env, isTerminal: false }));
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}

function painter(enabled: boolean): Paint {
  // `validateStream: false`, because Node would check the stream again with other rules.
  return enabled ? (style, text) => (text === '' ? text : styleText(style, text, { validateStream: false })) : (_style, text) => text;
}
