import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { hasColour, type OutputSettings, outputStream } from '../../plugin/output/terminal.ts';

const utf8 = { LANG: 'en_US.UTF-8' };

/** What a stream receives, for a terminal of so many columns or a pipe. */
function sink(settings: Partial<OutputSettings> = {}, columns?: number) {
  let text = '';
  const writable = new Writable({
    write: (chunk, _encoding, done) => {
      text += chunk;
      done();
    },
  });
  const stream = outputStream(Object.assign(writable, columns === undefined ? {} : { isTTY: true, columns }), { env: utf8, ...settings });
  return { stream, text: () => text };
}

describe('the printed text', () => {
  const foreign = 'a\u001b[31mred\u001b[0m\u001b]0;title\u0007\r\u0085\u202eb\u2028c\td\n';

  it('shows control characters of foreign text instead of sending them, and keeps tabs and line feeds', () => {
    const { stream, text } = sink();
    stream.write(foreign);
    expect(text()).toBe('a\\u001b[31mred\\u001b[0m\\u001b]0;title\\u0007\\u000d\\u0085\\u202eb\\u2028c\td\n');
  });

  it('keeps colour sequences if colour is on, and no other sequence', () => {
    const { stream, text } = sink({ color: 'always' });
    stream.write(foreign);
    expect(text()).toBe('a\u001b[31mred\u001b[0m\\u001b]0;title\\u0007\\u000d\\u0085\\u202eb\\u2028c\td\n');
  });

  it('keeps JSON valid', () => {
    const { stream, text } = sink();
    const value = { name: '\u001b[2J\u009b\u2028' };
    stream.write(JSON.stringify(value));
    expect(text()).not.toMatch(/\p{Cc}/u);
    expect(JSON.parse(text())).toEqual(value);
  });
});

describe('the abilities of a stream', () => {
  it('has the width of the terminal, 80 columns without a known width, and no width in a pipe', () => {
    expect(
      [sink({}, 132), sink({}, 0), sink(), sink({ width: 100 }), sink({ width: 100 }, 132)].map(({ stream }) => stream.columns),
    ).toEqual([132, 80, undefined, 100, 100]);
  });

  it('uses Unicode in a UTF-8 locale only, by the precedence of POSIX', () => {
    const marks = (env: OutputSettings['env'], ascii = false) => sink({ env, ascii }).stream.glyphs.ok;
    expect([
      marks({ LANG: 'de_DE.utf8' }),
      marks({ LC_ALL: 'C', LANG: 'de_DE.UTF-8' }),
      marks({ LC_ALL: '', LC_CTYPE: 'C.UTF-8', LANG: 'C' }),
      marks({ LANG: 'POSIX' }),
      marks(utf8, true),
    ]).toEqual(['✓', '+', '✓', '+', '+']);
  });

  it('has marks of one column in both sets, so that tables keep their shape', () => {
    const unicode = sink().stream.glyphs;
    const ascii = sink({ ascii: true }).stream.glyphs;
    for (const glyph of [...Object.values(unicode), ...Object.values(ascii)]) expect([...glyph]).toHaveLength(1);
    for (const glyph of Object.values(ascii)) expect(glyph).toMatch(/^[\x20-\x7e]$/);
  });
});

const cases: readonly (readonly [sentence: string, question: Parameters<typeof hasColour>[0], answer: boolean])[] = [
  ['a terminal has colour', { isTerminal: true, env: { TERM: 'xterm-256color' } }, true],
  ['a terminal without TERM has colour', { isTerminal: true, env: {} }, true],
  ['a pipe has none', { isTerminal: false, env: { TERM: 'xterm-256color' } }, false],
  ['a dumb terminal has none', { isTerminal: true, env: { TERM: 'dumb' } }, false],
  ['NO_COLOR turns a terminal off', { isTerminal: true, env: { NO_COLOR: '1' } }, false],
  ['NO_COLOR counts with any value', { isTerminal: true, env: { NO_COLOR: '0' } }, false],
  ['an empty NO_COLOR counts as unset', { isTerminal: true, env: { NO_COLOR: '' } }, true],
  ['FORCE_COLOR turns a pipe on', { isTerminal: false, env: { FORCE_COLOR: '1' } }, true],
  ['FORCE_COLOR=0 turns a terminal off', { isTerminal: true, env: { FORCE_COLOR: '0' } }, false],
  ['an empty FORCE_COLOR counts as unset', { isTerminal: false, env: { FORCE_COLOR: '' } }, false],
  ['NO_COLOR wins over FORCE_COLOR', { isTerminal: true, env: { NO_COLOR: '1', FORCE_COLOR: '1' } }, false],
  ['--color=always wins over a pipe and NO_COLOR', { isTerminal: false, env: { NO_COLOR: '1' }, color: 'always' }, true],
  ['--color=always wins over a dumb terminal', { isTerminal: true, env: { TERM: 'dumb' }, color: 'always' }, true],
  ['--color=never wins over FORCE_COLOR', { isTerminal: true, env: { FORCE_COLOR: '1' }, color: 'never' }, false],
  ['--color=auto asks the stream', { isTerminal: true, env: {}, color: 'auto' }, true],
];

describe('colour', () => {
  for (const [sentence, question, answer] of cases) it(sentence, () => expect(hasColour(question)).toBe(answer));
});
