// The description of a verb, used by the parser, the help, the completion and the documentation.
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../failure.ts';

/** The kind of value that shell completion offers. */
export type Completes = 'file' | 'directory' | 'source' | 'topic' | 'schemaPath' | 'nothing';

export interface OptionSpec {
  /** The flag as typed: `-o, --output <format>`, `--set <key=value>`, `--strict`. */
  readonly flags: string;
  readonly description: string;
  /** The allowed values. */
  readonly choices?: readonly string[];
  readonly default?: string;
  readonly isRequired?: boolean;
  /** The flag can be repeated. The command receives a list, empty if the flag is absent. */
  readonly isRepeatable?: boolean;
  /** The value is an integer of at least this size. */
  readonly atLeast?: number;
  readonly completes?: Completes;
}

export interface ArgumentSpec {
  /** The key of the value in the options of the command. */
  readonly name: string;
  readonly description: string;
  readonly isRequired?: boolean;
  /** The argument takes all remaining values. The command receives a list. */
  readonly isVariadic?: boolean;
  readonly choices?: readonly string[];
  readonly completes?: Completes;
}

/**
 * The function behind a verb. It receives its options and arguments under their camel-case names (`--detailed-exitcode` is
 * `detailedExitcode`). The parser guarantees the shape that the verb describes; the compiler cannot check it.
 */
type RunCommand = (context: CommandContext, options: never) => Promise<ExitCode>;

export type VerbGroup = 'Author' | 'Preview' | 'Observe' | 'Act' | 'Meta';

export interface Verb {
  readonly name: string;
  readonly group: VerbGroup;
  /** The line in the list of verbs. */
  readonly summary: string;
  /** Further sentences in the help of the verb. */
  readonly description?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options: readonly OptionSpec[];
  /** Without the program's name. */
  readonly examples: readonly string[];
  /** Exit codes other than 0, 3 and 70, with their meaning for this verb. */
  readonly exits?: Readonly<Partial<Record<ExitCode, string>>>;
  readonly isHidden?: boolean;
  /** The verb can talk to a cluster, so it also takes the connection flags (`ConnectionFlags`). */
  readonly usesCluster?: boolean;
  /** Loads the file of the command; no other code loads it. */
  readonly load: () => Promise<RunCommand>;
}

/** Returns the option for the output format. The first format is the default. */
export function outputOption(...formats: readonly string[]): OptionSpec {
  const [first] = formats;
  return {
    flags: '-o, --output <format>',
    description: 'Output format.',
    choices: formats,
    ...(first === undefined ? {} : { default: first }),
  };
}

export const agentNamespaceOption: OptionSpec = {
  flags: '--agent-namespace <name>',
  description: `Namespace of the agent, whose policies may apply to groups in other namespaces. Default: the namespace of its Lease, or ${usualAgentNamespace}.`,
};

export const fileOption: OptionSpec = {
  flags: '-f, --file <source>',
  description: 'Policies and manifests: a file, a directory, - for standard input, or git:REV[:PATH].',
  isRepeatable: true,
  completes: 'source',
};
