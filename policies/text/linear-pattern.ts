// Patterns of RE2, matched in a time that grows with pattern times text and never faster, whatever the pattern.
import type { Test } from './linear-pattern-class.ts';
import { type Assertion, type PatternNode, parsePattern } from './linear-pattern-syntax.ts';

export interface LinearPattern {
  readonly groupCount: number;
  /** What each group took, the whole match first, as with RegExp; undefined when the pattern matches nowhere in the text. */
  readonly exec: (text: string) => readonly (string | undefined)[] | undefined;
}

/** One step of a match. `next` and `other` are places in the program; of two, `next` is tried first. */
type Instruction =
  | { readonly kind: 'character'; readonly test: Test; readonly next: number }
  | { readonly kind: 'assertion'; readonly what: Assertion; readonly next: number }
  | { readonly kind: 'save'; readonly slot: number; readonly next: number }
  | { readonly kind: 'fork'; readonly next: number; readonly other: number }
  | { readonly kind: 'match' };

/** Repetitions of repetitions are written out; this is how long a program may become. */
const mostInstructions = 1000;

/** The longest name of a Kubernetes object; a longer text is no match. */
const longestText = 253;

/** The pattern, or why it cannot be used, as a sentence part that the pattern comes before. Never throws. */
export function compileLinear(source: string): LinearPattern | { readonly problem: string } {
  const parsed = parsePattern(source);
  if ('problem' in parsed) return parsed;
  const program = new Program();
  const start = program.emit(parsed.root, program.add({ kind: 'match' }));
  if (program.isTooLong) return { problem: 'is too large' };
  const { groupCount } = parsed;
  return { groupCount, exec: (text) => search(program.instructions, start, groupCount, text) };
}

/** Written from the end to the beginning: what follows a step is there before the step. */
class Program {
  readonly instructions: Instruction[] = [];
  isTooLong = false;

  add(instruction: Instruction): number {
    if (this.instructions.length >= mostInstructions) this.isTooLong = true;
    else this.instructions.push(instruction);
    return this.instructions.length - 1;
  }

  /** Where the node begins, if `next` follows it. */
  emit(node: PatternNode, next: number): number {
    if (this.isTooLong) return next;
    switch (node.kind) {
      case 'empty':
        return next;
      case 'character':
        return this.add({ kind: 'character', test: node.test, next });
      case 'assertion':
        return this.add({ kind: 'assertion', what: node.what, next });
      case 'group': {
        const end = this.add({ kind: 'save', slot: 2 * node.index + 1, next });
        return this.add({ kind: 'save', slot: 2 * node.index, next: this.emit(node.node, end) });
      }
      case 'sequence':
        return node.nodes.reduceRight((following, one) => this.emit(one, following), next);
      case 'choice': {
        const begins = node.nodes.map((one) => this.emit(one, next));
        return begins.reduceRight((other, begin) => this.add({ kind: 'fork', next: begin, other }));
      }
      case 'repeat':
        return this.#repeat(node, next);
    }
  }

  #repeat({ node, least, most, isLazy }: Extract<PatternNode, { kind: 'repeat' }>, next: number): number {
    const fork = (inside: number): Instruction =>
      isLazy ? { kind: 'fork', next, other: inside } : { kind: 'fork', next: inside, other: next };
    let begin = next;
    if (most === undefined) {
      const loop = this.add({ kind: 'match' });
      const inside = this.emit(node, loop);
      if (!this.isTooLong) this.instructions[loop] = fork(inside);
      begin = loop;
    }
    for (let count = least; count < (most ?? 0) && !this.isTooLong; count++) begin = this.add(fork(this.emit(node, begin)));
    for (let count = 0; count < least && !this.isTooLong; count++) begin = this.emit(node, begin);
    return begin;
  }
}

/**
 * The leftmost match, of several the one that a backtracking matcher finds first. A step that was once tried at a place has failed there and is
 * not tried again, from wherever it is reached: that is what bounds the time.
 */
function search(program: readonly Instruction[], start: number, groupCount: number, text: string): ReturnType<LinearPattern['exec']> {
  if (text.length > longestText) return undefined;
  const characters = Array.from(text);
  const points = characters.map((character) => character.codePointAt(0) ?? 0);
  const tried = new Uint8Array(program.length * (points.length + 1));
  for (let from = 0; from <= points.length; from++) {
    const slots = matchFrom({ program, points, tried }, { start, from, slotCount: 2 * groupCount + 2 });
    if (slots === undefined) continue;
    return Array.from({ length: groupCount + 1 }, (_, group) => {
      const [begin, end] = [slots[2 * group], slots[2 * group + 1]];
      return begin === undefined || end === undefined ? undefined : characters.slice(begin, end).join('');
    });
  }
  return undefined;
}

interface Search {
  readonly program: readonly Instruction[];
  readonly points: readonly number[];
  readonly tried: Uint8Array;
}

/** What is still to be tried, or to be taken back when nothing tried since has matched. */
type Job =
  | { readonly kind: 'try'; readonly place: number; readonly at: number }
  | { readonly kind: 'restore'; readonly slot: number; readonly value: number | undefined };

function matchFrom(
  { program, points, tried }: Search,
  { start, from, slotCount }: { readonly start: number; readonly from: number; readonly slotCount: number },
): readonly (number | undefined)[] | undefined {
  const slots: (number | undefined)[] = Array.from({ length: slotCount }, () => undefined);
  const jobs: Job[] = [{ kind: 'try', place: start, at: from }];
  for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) {
    if (job.kind === 'restore') {
      slots[job.slot] = job.value;
      continue;
    }
    const { place, at } = job;
    const instruction = program[place];
    const mark = place * (points.length + 1) + at;
    if (instruction === undefined || tried[mark] === 1) continue;
    tried[mark] = 1;
    const goOn = (next: number, nextAt = at): void => void jobs.push({ kind: 'try', place: next, at: nextAt });
    switch (instruction.kind) {
      case 'match':
        slots[0] = from;
        slots[1] = at;
        return slots;
      case 'character': {
        const point = points[at];
        if (point !== undefined && instruction.test(point)) goOn(instruction.next, at + 1);
        break;
      }
      case 'assertion':
        if (holds(instruction.what, points, at)) goOn(instruction.next);
        break;
      case 'save':
        jobs.push({ kind: 'restore', slot: instruction.slot, value: slots[instruction.slot] });
        slots[instruction.slot] = at;
        goOn(instruction.next);
        break;
      case 'fork':
        goOn(instruction.other);
        goOn(instruction.next);
        break;
    }
  }
  return undefined;
}

function holds(what: Assertion, points: readonly number[], at: number): boolean {
  switch (what) {
    case 'textBegin':
      return at === 0;
    case 'textEnd':
      return at === points.length;
    case 'lineBegin':
      return at === 0 || points[at - 1] === 10;
    case 'lineEnd':
      return at === points.length || points[at] === 10;
    case 'wordBoundary':
      return isWord(points[at - 1]) !== isWord(points[at]);
    case 'noWordBoundary':
      return isWord(points[at - 1]) === isWord(points[at]);
  }
}

function isWord(point: number | undefined): boolean {
  return point !== undefined && /\w/.test(String.fromCodePoint(point));
}
