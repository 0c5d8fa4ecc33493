// Reads the commands of a documentation page, runs them as a reader types them, and compares what they print with what the page shows.
//
// A page has two kinds of blocks with commands:
// - `console`: each line after `$ ` is a command, and the lines below show its output. A line `...` stands for any lines.
// - `sh`: each line is a command, and its output is not shown.
// A command ends with 0, unless its line ends with `# exit code N`.
//
// Comments that readers do not see, each on its own lines:
// - `<!-- cluster: ARGUMENTS -->`: the blocks below run next to `npm run cluster -- ARGUMENTS`, until the next comment of this kind.
//   `<!-- cluster: none -->` ends it. A block with nothing but `npm run cluster` does the same, and readers see it.
//   With `<!-- cluster: chart -->` the blocks run in test/deploy/chart.cluster.ts, on a cluster without an installation.
// - `<!-- before: COMMANDS -->`: these commands run first, and must succeed.
// - `<!-- not run: REASON -->`: the next block is not run. ``<!-- not run `WORDS`: REASON -->`` leaves out the commands that start with
//   these words.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** One command, with the lines of the page that show its output, from `from` to before `to`, counted from 0. */
export interface Command {
  /** The line of the page, counted from 1. */
  readonly line: number;
  readonly typed: string;
  readonly exitCode: number;
  /** Absent if the page shows no output. */
  readonly shown?: { readonly from: number; readonly to: number; readonly indent: string; readonly text: string };
}

/** The commands of a page that one shell runs, next to the cluster with these arguments or next to none. */
export interface Session {
  readonly cluster?: string;
  readonly commands: readonly Command[];
}

export interface Page {
  readonly sessions: readonly Session[];
  readonly notRun: readonly { readonly line: number; readonly reason: string }[];
  /** Lines that look like a command in a block without the tag of one. */
  readonly untagged: readonly number[];
}

interface Block {
  readonly tag: string;
  readonly indent: string;
  /** The index of the first line in the block. */
  readonly from: number;
  readonly lines: readonly string[];
}

/** Programs that a block without a tag must not start with, because nothing would run it. */
const programs = /^\s*(?:\$ |(?:kubectl|npm|node|helm|flux|skopeo|kustomize|promtool|sha256sum|git|rollout-group-agent)\s)/;
/** The cluster of test/deploy/chart.cluster.ts. */
export const chartCluster = 'chart';
const clusterCommand = /^npm run cluster(?: -- (.*))?$/;

/** Returns the commands of a page. Throws if a comment or a block has no end. */
export function readPage(markdown: string): Page {
  const lines = markdown.split('\n');
  const sessions: { cluster?: string; commands: Command[] }[] = [{ commands: [] }];
  const notRun: { line: number; reason: string }[] = [];
  const untagged: number[] = [];
  let omitted: { readonly words: string; readonly reason: string } | undefined;
  const begin = (cluster: string): void => void sessions.push({ ...(cluster === 'none' ? {} : { cluster }), commands: [] });
  for (let at = 0; at < lines.length; at++) {
    const comment = /^\s*<!-- (cluster|before|not run)(?: `(.+)`)?:/.exec(lines[at] ?? '');
    const fence = /^(\s*)```(\S*)\s*$/.exec(lines[at] ?? '');
    if (comment !== null) {
      const end = endOf(lines, at, /-->\s*$/);
      const words = lines
        .slice(at, end + 1)
        .join('\n')
        .replace(/^[^:]*:|-->\s*$/g, '')
        .trim();
      if (comment[1] === 'cluster') begin(words);
      else if (comment[1] === 'not run') omitted = { words: comment[2] ?? '', reason: words };
      else sessions.at(-1)?.commands.push(...words.split('\n').map((typed) => ({ line: at + 1, typed, exitCode: 0 })));
      at = end;
    } else if (fence !== null) {
      const [, indent = '', tag = ''] = fence;
      const end = endOf(lines, at + 1, /^\s*```\s*$/);
      const block: Block = { tag, indent, from: at + 1, lines: lines.slice(at + 1, end).map((line) => line.slice(indent.length)) };
      const cluster = clusterCommand.exec(block.lines.join('\n'));
      const commands = tag === 'sh' ? scriptOf(block) : tag === 'console' ? dialogueOf(block) : [];
      const left = commands.filter(({ typed }) => omitted === undefined || !typed.startsWith(omitted.words));
      if (tag !== 'sh' && tag !== 'console') untagged.push(...commandsIn(block));
      else if (cluster !== null && omitted === undefined) begin(cluster[1] ?? '');
      else sessions.at(-1)?.commands.push(...left);
      if (left.length < commands.length) notRun.push({ line: at + 1, reason: omitted?.reason ?? '' });
      if (commands.length > 0) omitted = undefined;
      at = end;
    }
  }
  return { sessions: sessions.filter(({ commands }) => commands.length > 0), notRun, untagged };
}

function endOf(lines: readonly string[], from: number, pattern: RegExp): number {
  const end = lines.findIndex((line, index) => index >= from && pattern.test(line));
  if (end < 0) throw new Error(`line ${from}: no line ends what starts here`);
  return end;
}

/** Returns the lines of a block that look like commands. Prose blocks, such as diagrams, have none. */
function commandsIn({ tag, lines, from }: Block): readonly number[] {
  return tag !== '' && tag !== 'text' ? [] : lines.flatMap((line, index) => (programs.test(line) ? [from + index + 1] : []));
}

function commandAt(line: number, typed: string): Command {
  return { line, typed, exitCode: Number(/# exit code (\d+)$/.exec(typed)?.[1] ?? 0) };
}

/** A command goes on in the next line after a backslash. */
function lastLineOf(lines: readonly string[], from: number): number {
  let last = from;
  while (lines[last]?.endsWith('\\')) last++;
  return last;
}

function scriptOf({ lines, from }: Block): readonly Command[] {
  const commands: Command[] = [];
  for (let at = 0; at < lines.length; at++) {
    const last = lastLineOf(lines, at);
    if (/^\s*[^#\s]/.test(lines[at] ?? '')) commands.push(commandAt(from + at + 1, lines.slice(at, last + 1).join('\n')));
    at = last;
  }
  return commands;
}

function dialogueOf({ lines, from, indent }: Block): readonly Command[] {
  const commands: Command[] = [];
  for (let at = 0; at < lines.length; at++) {
    if (!lines[at]?.startsWith('$ ')) throw new Error(`line ${from + at + 1}: a console block starts with "$ "`);
    const last = lastLineOf(lines, at);
    const next = lines.findIndex((line, index) => index > last && line.startsWith('$ '));
    const end = next < 0 ? lines.length : next;
    const shown = {
      from: from + last + 1,
      to: from + end,
      indent,
      text: lines
        .slice(last + 1, end)
        .map((line) => `${line}\n`)
        .join(''),
    };
    commands.push({
      ...commandAt(
        from + at + 1,
        lines
          .slice(at, last + 1)
          .join('\n')
          .slice(2),
      ),
      shown,
    });
    at = end - 1;
  }
  return commands;
}

export interface Ran {
  readonly command: Command;
  /** What the command printed to both streams. */
  readonly output: string;
  /** -1 if the command did not end in time. */
  readonly exitCode: number;
}

export interface Shell {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutSeconds: number;
}

/** Separates the outputs. No command prints it. */
const mark = '\u001e';

/** Types the commands into one shell. A command that does not end in time ends the shell. */
export async function runSession({ commands }: Session, { cwd, env, timeoutSeconds }: Shell): Promise<readonly Ran[]> {
  const script = commands.flatMap(({ typed }) => [typed, `printf '${mark}%s${mark}' "$?"`]).join('\n');
  const shell = spawn('timeout', [`${timeoutSeconds}`, 'bash', '-c', `exec 2>&1; set -o pipefail\n${script}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd,
    env,
  });
  const parts = (await text(shell.stdout)).split(mark);
  return commands.map((command, index) => ({ command, output: parts[index * 2] ?? '', exitCode: Number(parts[index * 2 + 1] ?? -1) }));
}

/** Turns an output into the form in which two outputs are compared. */
export type Mask = (output: string) => string;

export const exactly: Mask = (output) => output.replace(/[ \t]+$/gm, '');

/**
 * Hides what differs between two runs on a cluster: times, ages, hashes, sizes, and with them the widths of columns and the places where
 * lines break.
 */
export const withoutTimes: Mask = (output) =>
  output
    .replace(/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?UTC|Z)?)?/g, 'TIME')
    .replace(/\b\d+(?:\.\d+)?(?:ms|s|m|h|d)(?:\d+[smh])*\b/g, 'AGE')
    .replace(/-[a-z0-9]{8,10}-[a-z0-9]{5}_[0-9a-f]{8}\b/g, '-POD')
    .replace(/\b(?=[a-f]*\d)[0-9a-f]{7,}\b/g, 'HASH')
    .replace(/\b\d+(?:\.\d+)? [KM]iB\b/g, 'SIZE')
    .replace(/\s+/g, ' ')
    .trim();

/** Returns one text per command that ended or printed otherwise than the page says. */
export function differences(ran: readonly Ran[], mask: Mask): readonly string[] {
  return ran.flatMap(({ command: { line, typed, exitCode, shown }, output, exitCode: ended }) => {
    const failed = ended === exitCode ? [] : [`line ${line}: exit code ${ended}, not ${exitCode}: ${typed}\n${output}`];
    if (failed.length > 0 || shown === undefined || isShown(shown.text, output, mask)) return failed;
    return [`line ${line}: ${typed}\nthe page shows:\n${shown.text}the command prints:\n${output}`];
  });
}

/** Reports whether the output is the shown one, in which a line `...` stands for any lines. */
function isShown(shown: string, output: string, mask: Mask): boolean {
  const pieces = shown.split(/^\.\.\.\n/m).map(mask);
  const escaped = pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('[^]*')}$`).test(mask(output));
}

/** Returns the page with the outputs that the commands printed now, where they differ from what it shows. */
export function rewritten(markdown: string, ran: readonly Ran[], mask: Mask): string {
  const lines = markdown.split('\n');
  for (const { command, output } of ran.toReversed()) {
    const { shown } = command;
    if (shown === undefined || isShown(shown.text, output, mask)) continue;
    const now = output.replace(/\n$/, '').split('\n');
    lines.splice(
      shown.from,
      shown.to - shown.from,
      ...(output === '' ? [] : now).map((line) => `${shown.indent}${line.trimEnd()}`.trimEnd()),
    );
  }
  return lines.join('\n');
}
