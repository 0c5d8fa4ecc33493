// The command line: builds a parser from the verbs, and runs one invocation to an exit code.
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from './context.ts';
import { type ExitCode, exitCodes, usageFailure } from './failure.ts';
import { helpText } from './help.ts';
import { outputStream } from './output/terminal.ts';
import { flagsOf, globalOptions, verbs } from './verbs/all.ts';
import type { ArgumentSpec, OptionSpec, Verb } from './verbs/verb.ts';

/** The process as the program sees it. */
export interface ProcessView {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly readStdin: () => Promise<string>;
  /** As in the context; undefined if standard input is no terminal. */
  readonly ask?: (question: string) => Promise<string>;
  /** As in the context. */
  readonly keyboard?: NonNullable<CommandContext['keyboard']>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly nowMs: () => number;
}

interface GlobalFlags {
  readonly quiet?: boolean;
  readonly verbose?: number;
  readonly color?: 'auto' | 'always' | 'never' | false;
  readonly ascii?: boolean;
  readonly width?: number;
}

/** Parses `words` (without the program's name) and runs the verb. @throws Failure if they are invalid, and every error of the verb */
export async function runProgram(words: readonly string[], view: ProcessView): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.done;
  const program = buildProgram(view, async (verb, options, flags) => {
    const run = await verb.load();
    exitCode = await run(contextOf(view, flags), options as never);
  });
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Requested help is thrown too.
    if (error.exitCode !== 0) throw usageFailure(...usageMessage(error, words));
  }
  return exitCode;
}

type Action = (verb: Verb, options: unknown, flags: GlobalFlags) => Promise<void>;

function buildProgram(view: ProcessView, action: Action): Command {
  const program: Command = new Command('kubectl rollout-group')
    .helpCommand(false)
    .helpOption('-h, --help')
    .configureHelp({
      formatHelp: (command) =>
        helpText(verbs.find(({ name }) => name === command.name()) ?? 'all', contextOf(view, program.opts<GlobalFlags>()).stdout),
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
  for (const option of flagsOf(verb)) command.addOption(toOption(option));
  command.action(async () => {
    const byName = (verb.arguments ?? []).map((argument, index) => [argument.name, command.processedArgs[index]] as const);
    const present = byName.filter(([, value]) => value !== undefined);
    await action(verb, { ...command.opts(), ...Object.fromEntries(present) }, program.opts<GlobalFlags>());
  });
  return command;
}

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.description);
  if (spec.choices !== undefined) option.choices([...spec.choices]);
  if (spec.default !== undefined) option.default(spec.default);
  if (spec.isRequired === true) option.makeOptionMandatory();
  const { atLeast } = spec;
  if (atLeast !== undefined) option.argParser((text) => wholeNumber(text, atLeast));
  if (spec.isRepeatable === true) option.default([], 'none').argParser((text, before: readonly string[]) => [...before, text]);
  if (option.attributeName() === 'verbose') option.default(0, 'none').argParser((_text, before: number) => before + 1);
  return option;
}

function toArgument(spec: ArgumentSpec): Argument {
  const name = spec.isVariadic === true ? `${spec.name}...` : spec.name;
  const argument = new Argument(spec.isRequired === true ? `<${name}>` : `[${name}]`, spec.description);
  if (spec.choices !== undefined) argument.choices([...spec.choices]);
  return argument;
}

function wholeNumber(text: string, atLeast: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < atLeast) throw new InvalidArgumentError(`It must be a whole number of at least ${atLeast}.`);
  return value;
}

/** Turns commander's message into ours: what happened, and what to do. */
function usageMessage(error: CommanderError, words: readonly string[]): [string, string] {
  if (error.code === 'commander.help') return ['a verb is missing', 'kubectl rollout-group --help'];
  const [first = '', suggestion] = error.message.split('\n');
  const what = first
    .replace(/^error: /, '')
    .replaceAll("'", '"')
    .replace(/\.$/, '');
  const meant = suggestion?.match(/^\((Did you mean .*)\)$/)?.[1];
  const verb = verbs.find(({ name }) => words.includes(name));
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
    verbosity: flags.verbose ?? 0,
  };
}
