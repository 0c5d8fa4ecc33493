// Colour of a stream and styles of text. Colour never carries meaning alone.
import { styleText } from 'node:util';

/** The styles use only the 16 colours that follow the palette of the terminal, light or dark. */
export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'underline';

/** Styles text. Returns it unchanged without colour. */
export type Paint = (style: Style, text: string) => string;

export interface ColourQuestion {
  readonly isTerminal: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The value of --color; `never` for --no-color. */
  readonly flag?: 'always' | 'auto' | 'never';
}

/**
 * Reports whether the stream gets colour. Order: flag, NO_COLOR (https://no-color.org: any non-empty value), FORCE_COLOR, stream. NO_COLOR comes first
 * because users set it for all programs, whereas FORCE_COLOR often comes from a wrapper.
 */
export function hasColour({ isTerminal, env, flag = 'auto' }: ColourQuestion): boolean {
  if (flag !== 'auto') return flag === 'always';
  if (isSet(env['NO_COLOR'])) return false;
  const forced = env['FORCE_COLOR'];
  if (isSet(forced)) return forced !== '0' && forced !== 'false';
  return isTerminal && env['TERM'] !== 'dumb';
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}

/** Returns the painter of one stream. */
export function painter(enabled: boolean): Paint {
  // `validateStream: false`, because Node would check the stream again with other rules.
  return enabled ? (style, text) => (text === '' ? text : styleText(style, text, { validateStream: false })) : (_style, text) => text;
}
