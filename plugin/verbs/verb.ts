// Defines the description of a verb for the parser, help, completion and documentation, and the flags that several verbs share.
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { ClusterSubject } from '../cluster-candidates.ts';
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../failure.ts';

/** The kind of value that shell completion offers. */
export type Completes = 'file' | 'directory' | 'source' | 'topic' | 'schemaPath' | 'condition' | 'nothing' | ClusterSubject;

export interface OptionSpec {
  /** The flag as typed: `-o, --output <format>`, `--set <key=value>`, `--strict`. */
  readonly flags: string;
  readonly description: string;
  /** The allowed values. An entry that ends in `=` is the beginning of a value. */
  readonly choices?: readonly string[];
  readonly default?: string;
  readonly isRequired?: boolean;
  /** True if the flag can be repeated. The command receives a list, which is empty if the flag is absent. */
  readonly isRepeatable?: boolean;
  readonly atLeast?: number;
  readonly completes?: Completes;
}

export interface ArgumentSpec {
  /** The key of the value in the options of the command. */
  readonly name: string;
  readonly description: string;
  readonly isRequired?: boolean;
  /** True if the argument takes all remaining values. The command receives a list. */
  readonly isVariadic?: boolean;
  /** With isVariadic: true if the command runs once per value and receives one value. `together` are all values of the command line. */
  readonly isEach?: boolean;
  readonly choices?: readonly string[];
  readonly completes?: Completes;
}

/** The function behind a verb. Its options have camel-case names; the parser guarantees their shape, the compiler does not. */
type RunCommand = (context: CommandContext, options: never) => Promise<ExitCode>;

export interface Verb {
  readonly name: string;
  readonly summary: string;
  readonly description?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options: readonly OptionSpec[];
  /** Examples without the name of the program. */
  readonly examples: readonly string[];
  /** The exit codes other than 0, 3 and 70, with their meaning for this verb. `exitsOf` adds 11 and 12 if the verb uses a cluster. */
  readonly exits?: Readonly<Partial<Record<ExitCode, string>>>;
  readonly isHidden?: boolean;
  /** True if the verb can talk to a cluster, so that it also takes the connection flags (`ConnectionFlags`). */
  readonly usesCluster?: boolean;
  /** Loads the code of the command. Only a run of the verb calls it. */
  readonly load: () => Promise<RunCommand>;
}

/** Returns the option for the output format. The first format is the default. */
export function outputOption(...formats: readonly [string, ...string[]]): OptionSpec {
  return { flags: '-o, --output <format>', description: 'Output format.', choices: formats, default: formats[0] };
}

export const agentNamespaceOption: OptionSpec = {
  flags: '--agent-namespace <name>',
  description: `Namespace of the agent. Policies in it may apply to groups in other namespaces. Default: ${usualAgentNamespace}.`,
};

export const fileOption: OptionSpec = {
  flags: '-f, --filename <source>',
  description: 'Policies and manifests: a file, a directory, - for standard input, or git:REV[:PATH].',
  isRepeatable: true,
  completes: 'source',
};

export const programName = 'kubectl rollout-group';

/** Returns the usage line of a verb, for example `kubectl rollout-group lint [FILES...] [flags]`. */
export function usageText({ name, arguments: values = [] }: Verb): string {
  const shown = values.map((value) => {
    const word = `${value.name.toUpperCase()}${value.isVariadic === true ? '...' : ''}`;
    return value.isRequired === true ? word : `[${word}]`;
  });
  return [programName, name, ...shown, '[flags]'].join(' ');
}

export function argumentText({ description, choices }: ArgumentSpec): string {
  return `${description}${choicesText(choices)}`;
}

export function optionText({ description, choices, default: standard, isRepeatable, isRequired }: OptionSpec): string {
  const notes = [
    isRequired === true ? ' Required.' : '',
    isRepeatable === true ? ' Repeatable.' : '',
    choicesText(choices),
    standard === undefined ? '' : ` Default: ${standard}.`,
  ];
  return `${description}${notes.join('')}`;
}

function choicesText(choices: readonly string[] | undefined): string {
  return choices === undefined ? '' : ` One of ${choices.join(', ')}.`;
}

/** Returns `-o` and `--output` of `-o, --output <format>`. */
export function flagNames({ flags }: OptionSpec): readonly string[] {
  return flags.split(/[ ,]+/).filter((part) => part.startsWith('-'));
}

export function takesValue({ flags }: OptionSpec): boolean {
  return flags.includes('<');
}

/** The flags of every verb that can talk to a cluster. */
export const connectionOptions: readonly OptionSpec[] = [
  { flags: '--kubeconfig <file>', description: 'Kubeconfig file; default: KUBECONFIG, then ~/.kube/config.', completes: 'file' },
  { flags: '--context <name>', description: 'Context in the kubeconfig.', completes: 'context' },
  { flags: '--cluster <name>', description: 'Cluster in the kubeconfig.' },
  { flags: '--user <name>', description: 'User in the kubeconfig.' },
  { flags: '-s, --server <url>', description: 'Address of the API server.' },
  { flags: '--token <token>', description: 'Bearer token.' },
  { flags: '--as <user>', description: 'User to impersonate.' },
  { flags: '--as-group <group>', description: 'Group to impersonate.', isRepeatable: true },
  { flags: '--as-uid <uid>', description: 'UID to impersonate.' },
  { flags: '--certificate-authority <file>', description: 'CA certificate file for the API server.', completes: 'file' },
  { flags: '--client-certificate <file>', description: 'Client certificate file.', completes: 'file' },
  { flags: '--client-key <file>', description: 'Client key file.', completes: 'file' },
  { flags: '--insecure-skip-tls-verify', description: 'Do not verify the certificate of the API server.' },
  { flags: '--tls-server-name <name>', description: 'Server name for certificate verification.' },
  { flags: '--request-timeout <duration>', description: 'Timeout of a single request, for example 30s; 0 means 30s.' },
];

export const namespaceOption: OptionSpec = {
  flags: '-n, --namespace <name>',
  description: 'Namespace; default: the namespace of the context.',
  completes: 'namespace',
};

export const fromReportOption: OptionSpec = {
  flags: '--from-report <file>',
  description: 'Read this file of the verb report instead of a cluster, at the time of the report.',
  completes: 'file',
};

export const allNamespacesOption: OptionSpec = { flags: '-A, --all-namespaces', description: 'Groups in all namespaces.' };

export const actOptions: readonly OptionSpec[] = [
  { flags: '--reason <text>', description: 'Reason. A request stores it; resume, cancel, restart and scale write it into an Event.' },
  {
    flags: '--dry-run <where>',
    description: 'Print the objects and change nothing. client: send no changes. server: the API server validates them.',
    choices: ['client', 'server'],
  },
  namespaceOption,
];

export const groupForms = 'GROUP, NAMESPACE/GROUP, or a StatefulSet or pod of the group: sts/NAME or pod/NAME.';

export const groupArgument: ArgumentSpec = { name: 'group', description: groupForms, isRequired: true, completes: 'group' };

/** The argument for groups of a verb that acts on one group after the other. */
export const eachGroupArgument: ArgumentSpec = { ...groupArgument, isEach: true, isVariadic: true };

/** The argument for groups of a verb whose command receives all groups at once. */
export const groupsArgument: ArgumentSpec = { name: 'groups', description: groupForms, isVariadic: true, completes: 'group' };

export const selectorOption: OptionSpec = {
  flags: '-l, --selector <selector>',
  description: 'Only groups whose RolloutGroup has these labels, as in kubectl.',
};

/** Returns the exit codes of a verb other than 0, 3 and 70, by code. Adds the codes 11 and 12 for a verb that talks to a cluster. */
export function exitsOf({ exits, usesCluster }: Verb): readonly (readonly [code: string, meaning: string])[] {
  const ofCluster = { 11: 'permission is missing', 12: 'the cluster is unreachable' };
  return Object.entries({ ...(usesCluster === true && ofCluster), ...exits });
}
