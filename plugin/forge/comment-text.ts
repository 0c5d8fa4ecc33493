// Reads a comment in Markdown: the hidden marker in its first line, and text outside code that a forge would act on.
import { exitCodes, Failure, usageFailure } from '../failure.ts';

export type CommentOutcome = 'complete' | 'unchanged' | 'blocked' | 'waits';

export interface MarkedEnvironment {
  readonly name: string;
  /** Undefined if the marker has no outcome. */
  readonly outcome: CommentOutcome | undefined;
}

export interface CommentText {
  readonly environments: readonly MarkedEnvironment[];
  readonly body: string;
}

const markerLine = /^<!-- rollout-group:(?:plan|review)((?: [\w-]+=[\w.,:/-]*)*) -->$/;
const environmentName = /^\w[\w.-]{0,62}$/;
/** The name of the environment of a file that names no environment. */
const unnamed = 'default';
const outcomes: readonly CommentOutcome[] = ['complete', 'unchanged', 'blocked', 'waits'];

/** Returns the environments in the marker of a comment, each with its outcome; an empty list for a text without the marker. */
export function markedIn(text: string): readonly MarkedEnvironment[] {
  const fields = markerLine.exec(text.split(/\r?\n/, 1)[0] ?? '')?.[1];
  if (fields === undefined) return [];
  const { env = '', outcome = '' } = Object.fromEntries(fields.split(' ').map((field) => field.split('=', 2)));
  const found = outcome.split(',');
  return (env === '' ? unnamed : env).split(',').map((name: string, index: number) => ({
    name,
    outcome: outcomes.find((one) => one === found[index]),
  }));
}

/**
 * Reads a file as a comment. `environment` names the environment of a file that names none. Throws a Failure if the file is too long, has no
 * marker, or has text that a forge would act on.
 */
export function readComment(name: string, text: string, maxLength: number, environment: string = unnamed): CommentText {
  const given = text.replaceAll('\r\n', '\n');
  const marked = markedIn(given);
  if (marked.length === 0) {
    const todo = 'make the file with review -o markdown or plan -o markdown';
    throw new Failure({ exitCode: exitCodes.findings, what: `${name} does not begin with the marker of a plan or a review`, todo });
  }
  const isUnnamed = marked.length === 1 && marked[0]?.name === unnamed;
  const environments = isUnnamed ? marked.map((one) => ({ ...one, name: environment })) : marked;
  if (environment !== unnamed && environments.some((one) => one.name !== environment))
    throw usageFailure(`${name} names its environment: ${marked.map((one) => one.name).join(', ')}`, 'omit --environment');
  if (!environments.every((one) => environmentName.test(one.name)))
    throw usageFailure('the name of the environment is not 1 to 63 letters, digits, _, . or -', 'change the name');
  const body = isUnnamed ? given.replace(/^(<!-- \S+)(?: env=\S*)?/, `$1 env=${environment}`) : given;
  if (body.length > maxLength)
    throw usageFailure(`${name} has ${body.length} characters, and a comment can have at most ${maxLength}`, 'shorten it');
  const active = activeText(body);
  if (active !== undefined) {
    const what = `${name}:${active.line} has text that GitHub or GitLab acts on: ${JSON.stringify(active.text)}`;
    throw new Failure({ exitCode: exitCodes.findings, what, todo: 'post the file as review -o markdown or plan -o markdown wrote it' });
  }
  return { environments, body };
}

/** Control characters, which also end lines, and characters that change the direction of text. */
const unseen = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u;
/** The tags of our comments. */
const tag = /<\/?(?:details|summary|sub|b|strong|code|br)>/g;
/** Signs that begin code, links, HTML, formulas or escapes. In our text they are entities. */
const markup = /[\\`[\]<~$]/;
/** References and links that a forge finds in the text after Markdown, so also if a sign is an entity. */
const reference = /[@#!&~$%](?=[\w{"-])|\bgh-\d|\bwww\.\w|:\/\/|^\s*\/\w/i;
/** The beginning of a line inside a list or a quote. */
const container = String.raw`^[\s>*+\d.)-]*`;
/** The beginning of an HTML block. In it, backticks do not begin code. */
const htmlStart = new RegExp(`${container}<`);
/** A line that can be the delimiter row of a table. In a table, code ends at a pipe. */
const delimiterRow = /^(?=[^-]*-)[\s|:>*+\d.)-]*$/;

/**
 * Returns the first text outside code that can have an effect: a mention, a reference, a link, HTML, or a quick action. Accepts less than
 * Markdown allows: code counts as code only in the forms that our comments use, because a forge must not see less code than this function.
 */
function activeText(body: string): { readonly line: number; readonly text: string } | undefined {
  const lines = body.split('\n');
  const hidden = lines.findIndex((line) => unseen.test(line));
  if (hidden >= 0) return { line: hidden + 1, text: lines[hidden]?.slice(0, longestQuote) ?? '' };
  let first = 1;
  for (const block of blocksOf(lines.slice(1))) {
    const isHtml = block.some((line) => htmlStart.test(line));
    const isTable = block.some((line) => delimiterRow.test(line));
    for (const [index, line] of block.entries()) {
      const inTable = isTable ? [withoutCode(line.split(/(?<!\\)\|/))] : [];
      const readings = isHtml ? [line] : [withoutCode([line]), ...inTable];
      const text = readings.map(activeIn).find((one) => one !== undefined);
      if (text !== undefined) return { line: first + index + 1, text };
    }
    first += block.length;
  }
  return undefined;
}

/** Splits lines into blocks that end at a blank line. The lines of a code block become empty. */
function blocksOf(lines: readonly string[]): readonly (readonly string[])[] {
  const blocks: string[][] = [[]];
  let fence = '';
  for (const line of lines) {
    const isFirst = blocks.at(-1)?.length === 0;
    const isInside = fence !== '';
    if (isInside) fence = closes(line, fence) ? '' : fence;
    else if (isFirst) fence = /^(`{3,})(?:diff|text|yaml|json|console)?$/.exec(line)?.[1] ?? '';
    const isCode = isInside || fence !== '';
    blocks.at(-1)?.push(isCode ? '' : line);
    if (!isCode && /^[ \t]*$/.test(line)) blocks.push([]);
  }
  return blocks;
}

function closes(line: string, fence: string): boolean {
  return /^ {0,3}(`+)[ \t]*$/.exec(line)?.[1]?.startsWith(fence) === true;
}

/** The most characters of a text that a message quotes. */
const longestQuote = 60;

function activeIn(text: string): string | undefined {
  const plain = text.replace(tag, ' ');
  const raw = markup.exec(plain.replace(/&#\d+;|&zwj;/g, (entity) => ' '.repeat(entity.length)));
  if (raw !== null) return plain.slice(raw.index, raw.index + longestQuote);
  const shown = plain.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)).replaceAll('&zwj;', '\u200d');
  const active = reference.exec(shown);
  return active === null ? undefined : shown.slice(active.index, active.index + longestQuote);
}

/** Replaces code by a space, in each part alone. A backtick without its partner stays. */
function withoutCode(parts: readonly string[]): string {
  return parts.map((part) => part.replace(/(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/g, ' ')).join(' ');
}
