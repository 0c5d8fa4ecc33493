// How a verb is described: once, for the parser, the help, the completion and the documentation.
import { usualAgentNamespace } from '../../policies/agent-namespace.ts';
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';

/** What the shell may offer for a value. */
export type Completes = 'file' | 'directory' | 'source' | 'topic' | 'schemaPath' | 'nothing';

export interface OptionSpec {
  /** As people type it: `-o, --output <format>`, `--set <key=value>`, `--strict`. */
  readonly flags: string;
  readonly description: string;
  /** The only values it takes. */
  readonly choices?: readonly string[];
  readonly default?: string;
  readonly isRequired?: boolean;
  /** May be given several times; the command receives a list, empty when it was not given. */
  readonly isRepeatable?: boolean;
  /** A whole number, at least this large. */
  readonly atLeast?: number;
  readonly completes?: Completes;
}

export interface ArgumentSpec {
  /** The key under which the command receives it. */
  readonly name: string;
  readonly description: string;
  readonly isRequired?: boolean;
  /** Takes all that follow; the command receives a list. */
  readonly isVariadic?: boolean;
  readonly choices?: readonly string[];
  readonly completes?: Completes;
}

/**
 * The function behind a verb. It receives its own options and arguments under their names in camel case (`--detailed-exitcode` is
 * `detailedExitcode`); the parser guarantees that they have the shape that the verb describes, which the compiler cannot see.
 */
type RunCommand = (context: CommandContext, options: never) => Promise<ExitCode>;

export type VerbGroup = 'Author' | 'Preview' | 'Observe' | 'Act' | 'Meta';

export interface Verb {
  readonly name: string;
  readonly group: VerbGroup;
  /** One line in the list of verbs. */
  readonly summary: string;
  /** More, in the help of the verb. */
  readonly description?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options: readonly OptionSpec[];
  /** Without the program's name. */
  readonly examples: readonly string[];
  /** Exit codes other than 0, 3 and 70, with what they mean here. */
  readonly exits?: Readonly<Partial<Record<ExitCode, string>>>;
  readonly isHidden?: boolean;
  /** Talks to a cluster, or can: it takes the flags of the connection, as `ConnectionFlags`, besides its own. */
  readonly usesCluster?: boolean;
  /** Loads the one file that carries it out; nothing of it is loaded before. */
  readonly load: () => Promise<RunCommand>;
}

/** The choice of an output format; the first one is the default. */
export function outputOption(...formats: readonly string[]): OptionSpec {
  const [first] = formats;
  return {
    flags: '-o, --output <format>',
    description: 'Format of the result.',
    choices: formats,
    ...(first === undefined ? {} : { default: first }),
  };
}

export const agentNamespaceOption: OptionSpec = {
  flags: '--agent-namespace <name>',
  description: `Where the agent lives: policies there may bind groups elsewhere. Otherwise ${usualAgentNamespace}; of a cluster, where its Lease is.`,
};

export const fileOption: OptionSpec = {
  flags: '-f, --file <source>',
  description: 'Policies and manifests: a file, a directory, - for standard input, or git:REV[:PATH].',
  isRepeatable: true,
  completes: 'source',
};
