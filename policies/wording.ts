// Builds parts of sentences in findings and messages.
import { didYouMean } from './text/did-you-mean.ts';

/** Returns a list such as `a, b or c`. */
export function listed(words: readonly string[], joiner: 'or' | 'and' = 'or'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${joiner} ${words.at(-1)}`;
}

/** Returns zones with the noun: `zone a`, `zones a and b`. */
export function zonesText(zones: readonly string[]): string {
  return `${zones.length === 1 ? 'zone' : 'zones'} ${listed(zones, 'and')}`;
}

export function withArticle(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}

/** Returns a number with a noun: `3 pods`, `1 pod`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Returns the first `count` texts: `a, b and 3 more`. */
export function firstOf(texts: readonly string[], count: number, separator = ', '): string {
  return `${texts.slice(0, count).join(separator)}${texts.length > count ? ` and ${texts.length - count} more` : ''}`;
}

/** Returns a hint with the word that was probably meant, or undefined. */
export function suggestion(word: string, words: readonly string[]): string | undefined {
  const found = didYouMean(word, words);
  return found === undefined ? undefined : `did you mean ${found}`;
}

/** Returns the sentence with a lower-case first letter, for use after a place and a code. */
export function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
