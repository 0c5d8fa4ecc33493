// The verbs about the program itself.
import { allNamespacesOption, namespaceOption } from './connection.ts';
import { outputOption, type Verb } from './verb.ts';

const completion: Verb = {
  name: 'completion',
  group: 'Meta',
  summary: 'Print the completion script of a shell, or install completion for kubectl',
  description: 'kubectl asks a second program, kubectl_complete-rollout_group, for completions; install writes it beside this one.',
  arguments: [
    { name: 'shell', description: 'A shell, or install.', isRequired: true, choices: ['bash', 'zsh', 'fish', 'powershell', 'install'] },
  ],
  options: [{ flags: '--dir <directory>', description: 'With install: a directory on the PATH.', completes: 'directory' }],
  examples: ['completion install', 'completion bash > /etc/bash_completion.d/kubectl-rollout-group'],
  exits: { 10: 'the directory does not exist', 11: 'the directory cannot be written to' },
  load: async () => (await import('../commands/completion.ts')).run,
};

const docs: Verb = {
  name: 'docs',
  group: 'Meta',
  summary: 'Read about a topic, a finding code or a rule, offline',
  arguments: [
    {
      name: 'topic',
      description: 'A topic, a code such as RG2001 or a rule such as zone-gap; all topics when left out.',
      completes: 'topic',
    },
  ],
  options: [outputOption('text', 'json')],
  examples: ['docs', 'docs exit-codes', 'docs RG2001'],
  exits: { 10: 'there is no such topic' },
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
  summary: 'Say what is wrong with an installation, check by check',
  description:
    'Looks at the agent, its rights, the kinds, the groups and whoever else writes what the agent writes. Changes nothing. What may not be read is skipped, and never shown as passed.',
  options: [
    namespaceOption,
    allNamespacesOption,
    { flags: '--agent-namespace <name>', description: 'Where the agent lives; otherwise where its Lease is found.' },
    { flags: '--agent-service-account <account>', description: 'NAMESPACE/NAME, when it is not rollout-group-agent in that namespace.' },
    { flags: '--fix-hints', description: 'Also say how to mend what is wrong.' },
    outputOption('table', 'json', 'yaml'),
  ],
  examples: ['doctor -n mimir', 'doctor -A --fix-hints', 'doctor -n mimir -o json'],
  exits: { 4: 'a check failed', 11: 'StatefulSets may not be read', 12: 'the cluster cannot be reached' },
  usesCluster: true,
  load: async () => (await import('../commands/doctor.ts')).run,
};

export const metaVerbs: readonly Verb[] = [doctor, completion, docs, version];
