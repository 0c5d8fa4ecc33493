// The verbs about the program itself.
import { allNamespacesOption, namespaceOption } from './connection.ts';
import { outputOption, type Verb } from './verb.ts';

const completion: Verb = {
  name: 'completion',
  group: 'Meta',
  summary: 'Print the completion script of a shell, or install completion for kubectl',
  description: 'kubectl reads completions from a second program, kubectl_complete-rollout_group. install writes it next to this program.',
  arguments: [
    { name: 'shell', description: 'A shell, or install.', isRequired: true, choices: ['bash', 'zsh', 'fish', 'powershell', 'install'] },
  ],
  options: [{ flags: '--dir <directory>', description: 'With install: a directory on the PATH.', completes: 'directory' }],
  examples: ['completion install', 'completion bash > /etc/bash_completion.d/kubectl-rollout-group'],
  exits: { 10: 'the directory does not exist', 11: 'the directory is not writable' },
  load: async () => (await import('../commands/completion.ts')).run,
};

const docs: Verb = {
  name: 'docs',
  group: 'Meta',
  summary: 'Read about a topic, a finding code or a rule, offline',
  arguments: [
    {
      name: 'topic',
      description: 'A topic, a code such as RG2001, or a rule such as zone-gap; default: the list of topics.',
      completes: 'topic',
    },
  ],
  options: [outputOption('text', 'json')],
  examples: ['docs', 'docs exit-codes', 'docs RG2001'],
  exits: { 10: 'the topic does not exist' },
  load: async () => (await import('../commands/docs.ts')).run,
};

const version: Verb = {
  name: 'version',
  group: 'Meta',
  summary: 'Print the version',
  options: [outputOption('text', 'json', 'yaml')],
  examples: ['version', 'version -o json'],
  load: async () => (await import('../commands/version.ts')).run,
};

const doctor: Verb = {
  name: 'doctor',
  group: 'Meta',
  summary: 'Check an installation and report problems',
  description:
    'Checks the agent, its RBAC, the CRDs, the groups and other writers of the same fields. Changes nothing. A check without read permission is skipped, never passed.',
  options: [
    namespaceOption,
    allNamespacesOption,
    { flags: '--agent-namespace <name>', description: 'Namespace of the agent; default: the namespace of its Lease.' },
    {
      flags: '--agent-service-account <account>',
      description: 'Service account of the agent as NAMESPACE/NAME; default: rollout-group-agent in the namespace of the agent.',
    },
    { flags: '--fix-hints', description: 'Also show how to fix each problem.' },
    outputOption('table', 'json', 'yaml'),
  ],
  examples: ['doctor -n mimir', 'doctor -A --fix-hints', 'doctor -n mimir -o json'],
  exits: { 4: 'a check failed', 11: 'permission to list StatefulSets is missing', 12: 'the cluster is unreachable' },
  usesCluster: true,
  load: async () => (await import('../commands/doctor.ts')).run,
};

export const metaVerbs: readonly Verb[] = [doctor, completion, docs, version];
