import { describe, expect, it } from 'vitest';
import { hasColour } from '../../plugin/output/terminal.ts';

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
