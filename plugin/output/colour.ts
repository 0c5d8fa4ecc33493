// Whether a stream gets colour, and how text is styled when it does. No meaning is carried by colour alone.
import { styleText } from 'node:util';

/** Sixteen-colour names only: they follow the palette of the terminal, light or dark. */
export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'underline';

/** Styles text, or returns it unchanged. */
export type Paint = (style: Style, text: string) => string;

export interface ColourQuestion {
  readonly isTerminal: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The value of --color; `never` for --no-color. */
  readonly flag?: 'always' | 'auto' | 'never';
}

/**
 * The flag wins, then NO_COLOR (https://no-color.org: any non-empty value), then FORCE_COLOR, then the stream itself. NO_COLOR is asked first
 * because a person sets it for everything, FORCE_COLOR often comes from a wrapper.
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

/** The painter of one stream. */
export function painter(enabled: boolean): Paint {
  // Whether there is colour has been decided above; Node's own look at the stream would decide it a second time, and differently.
  return enabled ? (style, text) => (text === '' ? text : styleText(style, text, { validateStream: false })) : (_style, text) => text;
}
