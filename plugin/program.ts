// Builds the command line parser from the verbs, runs one invocation, and returns its exit code.
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { didYouMean } from '../policies/text/did-you-mean.ts';
import { defined } from '../policies/values/defined.ts';
import { firstOf, listed } from '../policies/wording.ts';
import type { ConnectionFlags } from './connection.ts';
import type { CommandContext } from './context.ts';
import { type ExitCode, exitCodes, usageFailure } from './failure.ts';
import { helpSections } from './help.ts';
import { outputStream } from './output/terminal.ts';
import { helpText } from './output/text.ts';
import { flagsOf, globalOptions, verbOf, verbs } from './verbs/all.ts';
import { type ArgumentSpec, flagNames, type OptionSpec, takesValue, type Verb } from './verbs/verb.ts';

export interface ProcessView extends Pick<CommandContext, 'readStdin' | 'keyboard' | 'env' | 'cwd' | 'nowMs'> {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Asks the user for a line; absent if standard input is not a terminal. */
  readonly ask?: (question: string) => Promise<string>;
}

interface GlobalFlags {
  readonly quiet?: boolean;
  readonly v?: number;
  readonly color?: 'auto' | 'always' | 'never' | false;
  readonly ascii?: boolean;
  readonly width?: number;
}

/** Parses `words` (without the name of the program) and runs the verb. Throws Failure for invalid words, and every error of the verb. */
export async function runProgram(words: readonly string[], view: ProcessView): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.done;
  const program = buildProgram(view, async (verb, options, flags) => {
    const run = await verb.load();
    const context = await withGivenReport({ ...contextOf(view, flags), words }, options as ReportFlag);
    const ofReport = defined({ agentNamespace: context.cluster?.agentNamespace });
    const code = await run(context, { ...ofReport, ...(options as object) } as never);
    if (exitCode === exitCodes.done) exitCode = code;
  });
  try {
    await program.parseAsync(commanderWords(words), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // commander throws also after it has printed the requested help.
    if (error.exitCode !== 0) throw usageFailure(...usageMessage(error, words));
  }
  return exitCode;
}

interface ReportFlag extends ConnectionFlags {
  readonly fromReport?: string;
}

async function withGivenReport(context: CommandContext, options: ReportFlag): Promise<CommandContext> {
  const { fromReport } = options;
  return fromReport === undefined ? context : (await import('./report/recorded-cluster.ts')).withReport(context, fromReport, options);
}

type Action = (verb: Verb, options: unknown, flags: GlobalFlags) => Promise<void>;

function buildProgram(view: ProcessView, action: Action): Command {
  const program: Command = new Command('kubectl rollout-group')
    .helpOption('-h, --help')
    .configureHelp({
      formatHelp: (command) => helpText(helpSections(command.name()) ?? [], contextOf(view, program.opts<GlobalFlags>()).stdout),
    })
    .configureOutput({
      writeOut: (text) => contextOf(view, program.opts<GlobalFlags>()).stdout.write(text),
      // The help is already painted for its stream; commander would remove the colour.
      getOutHasColors: () => true,
      // The entry point prints the message of the thrown error once.
      writeErr: () => undefined,
    })
    .exitOverride();
  for (const option of globalOptions) program.addOption(toOption(option));
  for (const verb of verbs) program.addCommand(toCommand(program, verb, action));
  return program;
}

function toCommand(program: Command, verb: Verb, action: Action): Command {
  const command = new Command(verb.name).copyInheritedSettings(program);
  for (const argument of verb.arguments ?? []) command.addArgument(toArgument(argument));
  for (const option of flagsOf(verb)) {
    command.addOption(toOption(option));
    if (isOnByDefault(option)) command.addOption(new Option(offFlag(option)).hideHelp());
  }
  command.action(async () => {
    const byName = (verb.arguments ?? []).map((argument, index) => [argument.name, command.processedArgs[index]] as const);
    const present = Object.fromEntries(byName.filter(([, value]) => value !== undefined));
    const each = verb.arguments?.find(({ isEach }) => isEach === true)?.name;
    const values: readonly unknown[] = each === undefined ? [undefined] : present[each];
    const { output } = command.opts<{ output?: string }>();
    if (values.length > 1 && (output === 'json' || output === 'yaml' || output?.startsWith('jsonpath=') === true))
      throw usageFailure(`-o ${output} prints one document, about one group`, 'name one group');
    for (const value of values) {
      const own = each === undefined ? {} : { [each]: value, together: values };
      await action(verb, { ...command.opts(), ...present, ...own }, program.opts<GlobalFlags>());
    }
  });
  return command;
}

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.description);
  if (spec.choices !== undefined) option.choices([...spec.choices]).argParser((text) => chosenValue(text, spec.choices));
  if (isOnByDefault(spec)) option.default(true);
  else if (spec.default !== undefined) option.default(spec.default);
  if (spec.isRequired === true) option.makeOptionMandatory();
  const { atLeast } = spec;
  if (atLeast !== undefined) option.argParser((text) => wholeNumber(text, atLeast));
  if (spec.isRepeatable === true) option.default([], 'none').argParser((text, before: readonly string[]) => [...before, text]);
  return option;
}

function toArgument(spec: ArgumentSpec): Argument {
  const name = spec.isVariadic === true ? `${spec.name}...` : spec.name;
  const argument = new Argument(spec.isRequired === true ? `<${name}>` : `[${name}]`, spec.description);
  if (spec.choices !== undefined) argument.choices([...spec.choices]);
  return argument;
}

/** An example for each choice that is the beginning of a value. */
const valueExamples: Readonly<Record<string, string>> = {
  'jsonpath=': '-o jsonpath="{.groups[*].phase}"',
  'custom-columns=': '-o custom-columns=NAME:.group.name,PHASE:.phase',
};

function chosenValue(text: string, choices: readonly string[] = []): string {
  const isAllowed = choices.some((choice) => (choice.endsWith('=') ? text.startsWith(choice) && text !== choice : text === choice));
  const begun = choices.find((choice) => choice.endsWith('=') && choice.startsWith(text.replace(/=?$/, '=')));
  if (begun !== undefined) throw new InvalidArgumentError(`${begun} needs a value: ${valueExamples[begun] ?? ''}.`);
  if (!isAllowed) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
  return text;
}

function wholeNumber(text: string, atLeast: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < atLeast) throw new InvalidArgumentError(`It must be a whole number of at least ${atLeast}.`);
  return value;
}

/** Rewrites the forms of kubectl that commander does not parse: flags before the verb, `-o=json`, `--yes=true` and `--watch=false`. */
function commanderWords(typed: readonly string[]): readonly string[] {
  const verb = verbOf(typed);
  const at = verb === undefined ? 0 : typed.indexOf(verb.name);
  const words = [...typed.slice(at, at + 1), ...typed.slice(0, at), ...typed.slice(at + 1)];
  const options = [...(verb === undefined ? [] : flagsOf(verb)), ...globalOptions];
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const rewritten = words.slice(0, end).flatMap((word) => {
    const [, flag = '', value = ''] = /^(--?[a-zA-Z][a-z-]*)=(.*)$/s.exec(word) ?? [];
    const option = options.find((candidate) => flagNames(candidate).includes(flag));
    if (option === undefined) return [word];
    if (takesValue(option)) return flag.startsWith('--') ? [word] : [flag, value];
    if (value === 'true') return [flag];
    if (value !== 'false') return [word];
    return isOnByDefault(option) ? [offFlag(option)] : [];
  });
  return [...rewritten, ...words.slice(end)];
}

/** Reports whether the flag is on by default. `--flag=false` turns it off. */
function isOnByDefault(option: OptionSpec): boolean {
  return option.default === 'true' && !takesValue(option);
}

function offFlag(option: OptionSpec): string {
  return `--no-${(flagNames(option).at(-1) ?? '').slice(2)}`;
}

/** Words that users of kubectl try, each with the verb that answers the same question here. `GROUP` stands for the name. */
const kubectlVerbs: Readonly<Record<string, string>> = {
  describe: 'explain GROUP (why it waits), or get GROUP (zones and pods)',
  wait: 'status GROUP --for CONDITION',
  watch: 'get GROUP -w',
  list: 'get',
  rollback: 'undo GROUP',
};

function kubectlHint(words: readonly string[]): string | undefined {
  const isName = (word: string, before = ''): boolean => !/^(?:-.*|rg|rolloutgroups?)$/.test(word) && !/^(?:-n|--namespace)$/.test(before);
  const named = words.filter((word, index) => isName(word, words[index - 1]));
  // Each verb of `kubectl rollout` is a verb here.
  const [verb = 'status', group = 'GROUP'] = named[0] === 'rollout' ? named.slice(1) : named;
  if (verb !== named[0]) return `use: kubectl rollout-group ${verb} ${group}`;
  const hint = Object.hasOwn(kubectlVerbs, verb) ? kubectlVerbs[verb] : undefined;
  return hint === undefined ? undefined : `use: kubectl rollout-group ${hint.replaceAll('GROUP', group)}`;
}

/** Returns a hint if a flag has another name here or belongs to other verbs, or if a group is given as an argument instead of with --group. */
function flagHint({ code, message }: CommanderError, verb: Verb | undefined): string | undefined {
  const unknown = unknownFlag(message);
  const flag = code === 'commander.excessArguments' ? '--group' : unknown === '--for' ? '--duration' : undefined;
  const option = flag === undefined ? undefined : verb?.options?.find((one) => flagNames(one).includes(flag));
  if (option !== undefined) return `use: kubectl rollout-group ${verb?.name} ${option.flags}`;
  const takers = verbs.filter((one) => flagsOf(one).some((other) => flagNames(other).includes(unknown))).map(({ name }) => name);
  return takers.length === 0 ? undefined : `${unknown} is a flag of ${takers.length > 4 ? firstOf(takers, 4) : listed(takers, 'and')}`;
}

function unknownFlag(message: string): string {
  return /unknown option '(-[^'=]*)/.exec(message)?.[1] ?? '';
}

/** Returns the suggestion for a misspelled word. commander suggests flags that are too unlike the word, such as --user for --set. */
function meantBy({ code, message }: CommanderError, verb: Verb | undefined): string | undefined {
  if (code !== 'commander.unknownOption') return /^\((Did you mean .*)\)$/m.exec(message)?.[1];
  const flags = [...(verb === undefined ? [] : flagsOf(verb)), ...globalOptions].flatMap(flagNames);
  const meant = didYouMean(unknownFlag(message), flags);
  return meant && `Did you mean ${meant}?`;
}

function usageMessage(error: CommanderError, words: readonly string[]): [string, string] {
  if (error.code === 'commander.help') return ['a verb is missing', 'kubectl rollout-group --help'];
  const [first = ''] = error.message.split('\n');
  const what = first
    .replace(/^error: /, '')
    .replaceAll("'", '"')
    .replace(/\.$/, '');
  const verb = verbOf(words);
  const hint = error.code === 'commander.unknownCommand' ? kubectlHint(words) : flagHint(error, verb);
  if (hint !== undefined) return [what, hint];
  const meant = meantBy(error, verb);
  const help = `kubectl rollout-group ${verb === undefined ? '' : `${verb.name} `}--help`;
  return [what, meant === undefined ? help : `${meant} See ${help}`];
}

function contextOf(view: ProcessView, flags: GlobalFlags): CommandContext {
  const settings = {
    env: view.env,
    color: flags.color === false ? ('never' as const) : (flags.color ?? 'auto'),
    ascii: flags.ascii === true,
    ...(flags.width === undefined ? {} : { width: flags.width }),
  };
  return {
    ...view,
    stdout: outputStream(view.stdout, settings),
    stderr: outputStream(view.stderr, settings),
    ask: view.ask,
    quiet: flags.quiet === true,
    verbosity: flags.v ?? 0,
  };
}
