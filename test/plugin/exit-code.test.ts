import { expect, it } from 'vitest';
import { exitCodes, mostSevere } from '../../plugin/failure.ts';

it('the most serious of several exit codes wins', () => {
  const inOrder = [130, 70, 3, 12, 11, 10, 6, 5, 9, 7, 4, 8, 2, 1, 0] as const;
  for (const [index, code] of inOrder.entries()) expect(mostSevere([...inOrder.slice(index)].reverse())).toBe(code);
  expect(mostSevere([])).toBe(0);
});

it('every exit code has a rank', () => {
  for (const code of Object.values(exitCodes)) expect(mostSevere([code])).toBe(code);
});
