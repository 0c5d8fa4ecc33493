// The verbs that ask something of a group.
import type { Verb } from './verb.ts';

export const actVerbs: readonly Verb[] = [];
