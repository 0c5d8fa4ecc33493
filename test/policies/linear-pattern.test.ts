import { describe, expect, it } from 'vitest';
import { compileLinear } from '../../policies/text/partition-pattern.ts';
import { seededRandom } from '../kit/virtual-env.ts';

function exec(pattern: string, text: string): readonly (string | undefined)[] | undefined | string {
  const compiled = compileLinear(pattern);
  return 'problem' in compiled ? compiled.problem : compiled.exec(text);
}

describe('a pattern', () => {
  it.each<[string, string, readonly (string | undefined)[] | undefined]>([
    ['a-([0-9]+)', 'x-a-12-y', ['a-12', '12']],
    ['^a-([0-9]+)$', 'a-12-y', undefined],
    ['^a-([0-9]+)|b-([0-9]+)$', 'a-1-x', ['a-1', '1', undefined]],
    ['^a-([0-9]+)|b-([0-9]+)$', 'x-b-2', ['b-2', undefined, '2']],
    ['(a|ab)(c|bcd)(d*)', 'abcd', ['abcd', 'a', 'bcd', '']],
    ['(a*?)(a*)', 'aaa', ['aaa', '', 'aaa']],
    ['(?U)(a*)(a*)', 'aaa', ['', '', '']],
    ['(?i)INGESTER-(?-i)z', 'ingester-z', ['ingester-z']],
    ['(?i:A)b', 'ab', ['ab']],
    ['(?i:A)B', 'ab', undefined],
    ['(?P<zone>a)(?<pod>b)', 'ab', ['ab', 'a', 'b']],
    ['x{2,3}', 'xxxx', ['xxx']],
    ['x{2}', 'xxxx', ['xx']],
    ['x{2,}?', 'xxxx', ['xx']],
    ['x{,3}', 'x{,3}', ['x{,3}']],
    ['[]a-c]+', 'ab]d', ['ab]']],
    ['[^a-c]+', 'abxyc', ['xy']],
    ['[a-]+', 'b-a-', ['-a-']],
    ['[[:alpha:]\\d]+', '-a1-', ['a1']],
    ['[[:^alpha:]]+', 'ab12c', ['12']],
    ['\\d+\\D\\w+\\W\\s', '1-ab- ', ['1-ab- ']],
    ['\\pL+\\p{Greek}\\P{L}', 'abα1', ['abα1']],
    ['\\x41\\x{42}\\103\\.', 'ABC.', ['ABC.']],
    ['\\Qa.b*\\E+', 'a.b**', ['a.b**']],
    ['\\bfoo\\B', 'a fool', ['foo']],
    ['\\Aa\\z', 'a', ['a']],
    ['a.c', 'a\nc', undefined],
    ['(?s)a.c', 'a\nc', ['a\nc']],
    ['(?m)^b$', 'a\nb\nc', ['b']],
    ['(a*)*', 'b', ['', '']],
    ['(?:a|)+b', 'aab', ['aab']],
    ['', 'abc', ['']],
    ['()', '', ['', '']],
  ])('%s on %j', (pattern, text, expected) => {
    expect(exec(pattern, text)).toEqual(expected);
  });

  it.each([
    ['(', 'does not compile'],
    [')', 'does not compile'],
    ['[a', 'does not compile'],
    ['[b-a]', 'does not compile'],
    ['[[:nothing:]]', 'does not compile'],
    ['*a', 'does not compile'],
    ['a|+', 'does not compile'],
    ['a**', 'does not compile'],
    ['a+{2}', 'does not compile'],
    ['a{3,2}', 'does not compile'],
    ['a{1001}', 'does not compile'],
    ['\\y', 'does not compile'],
    ['\\', 'does not compile'],
    ['\\pQ', 'does not compile'],
    ['\\x{110000}', 'does not compile'],
    ['(?x)a', 'does not compile'],
    ['(?P<a>x)(?P<a>y)', 'does not compile'],
    ['(?=a)', 'uses look-around or a back-reference'],
    ['(?!a)', 'uses look-around or a back-reference'],
    ['(?<=a)', 'uses look-around or a back-reference'],
    ['(?<!a)', 'uses look-around or a back-reference'],
    ['(a)\\1', 'uses look-around or a back-reference'],
    ['(?<a>x)\\k<a>', 'uses look-around or a back-reference'],
    ['(((a{100}){100}){100})', 'is too large'],
    [`${'('.repeat(1001)}a${')'.repeat(1001)}`, 'is nested too deeply'],
    ['a{600}b{600}', 'is too large'],
  ])('%s is rejected: it %s', (pattern, problem) => {
    expect(exec(pattern, 'a')).toBe(problem);
  });

  it('never fails on any text', () => {
    const random = seededRandom(7);
    const pieces = [
      'a',
      'b',
      '(',
      ')',
      '[',
      ']',
      '{',
      '}',
      '2',
      ',',
      '*',
      '+',
      '?',
      '|',
      '^',
      '$',
      '.',
      '\\',
      '-',
      ':',
      'P',
      '<',
      '>',
      'Q',
      'x',
    ];
    for (let round = 0; round < 20_000; round += 1) {
      const pattern = Array.from({ length: Math.floor(random() * 12) }, () => pieces[Math.floor(random() * pieces.length)]).join('');
      expect(() => exec(pattern, 'ab-2')).not.toThrow();
    }
  });

  it('has the matches of JavaScript, in the common syntax', () => {
    const random = seededRandom(11);
    const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
    /** Groups that are repeated forget in JavaScript what they took before, so only such outside of repetitions capture. */
    const node = (depth: number, mayCapture: boolean): string => {
      const kind = depth === 0 ? 0 : Math.floor(random() * 6);
      if (kind <= 1) return pick(['a', 'b', '-', '[ab]', '[^a]', '.', '\\d', '1']);
      if (kind === 2) return `${node(depth - 1, mayCapture)}${node(depth - 1, mayCapture)}`;
      if (kind === 3) return `(?:${node(depth - 1, mayCapture)}|${node(depth - 1, mayCapture)})`;
      if (kind === 4) return mayCapture ? `(${node(depth - 1, true)})` : node(depth - 1, false);
      return `(?:${pick(['a', 'b', '[ab]', 'ab', 'a|b', '-?1'])})${pick(['*', '+', '?', '*?', '+?', '??', '{1,2}', '{2,}'])}`;
    };
    for (let round = 0; round < 5000; round += 1) {
      const pattern = `${pick(['', '^'])}${node(4, true)}${pick(['', '$'])}`;
      const text = Array.from({ length: Math.floor(random() * 8) }, () => pick(['a', 'b', '-', '1'])).join('');
      const found = new RegExp(pattern).exec(text);
      expect([pattern, text, exec(pattern, text)]).toEqual([pattern, text, found === null ? undefined : [...found]]);
    }
  });
});
