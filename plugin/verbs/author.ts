// Describes the verbs for writing policy files.
import { agentNamespaceOption, allNamespacesOption, fileOption, namespaceOption, outputOption, type Verb } from './verb.ts';

const lint: Verb = {
  name: 'lint',
  summary: 'Check policies and manifests and show where each finding is',
  description:
    'Checks syntax, schema and meaning, also across files. Fails if there are errors or warnings, and with --strict also if there are notices.',
  arguments: [{ name: 'files', description: 'Files, directories, - or git:REV[:PATH].', isVariadic: true, completes: 'source' }],
  options: [
    fileOption,
    outputOption('text', 'json', 'jsonl', 'sarif', 'junit', 'github', 'markdown'),
    { flags: '--strict', description: 'Fail also if there are notices.' },
    agentNamespaceOption,
  ],
  examples: ['lint policies/ manifests/', 'lint git:HEAD:policies -o sarif', 'lint - < group.yaml'],
  exits: { 4: 'there are errors or warnings', 10: 'a file or a revision does not exist' },
  load: async () => (await import('../commands/lint.ts')).run,
};

const fmt: Verb = {
  name: 'fmt',
  summary: 'Format policy files and keep their comments',
  description: 'Prints the result. --write changes the files. --check only names the files that would change.',
  arguments: [
    { name: 'files', description: 'Files, directories or - for standard input.', isVariadic: true, isRequired: true, completes: 'file' },
  ],
  options: [
    { flags: '--check', description: 'Name the files that are not formatted, and fail.' },
    { flags: '--write', description: 'Change the files in place.' },
  ],
  examples: ['fmt --write policies/', 'fmt --check policies/', 'fmt - < group.yaml'],
  exits: { 4: 'a file is not valid YAML; with --check also: a file is not formatted', 10: 'a file does not exist' },
  load: async () => (await import('../commands/fmt.ts')).run,
};

const schema: Verb = {
  name: 'schema',
  summary: 'Show the fields of a kind, its JSON Schema or its CRD',
  description: 'Prints the reference of the fields. To see why a group waits, use explain.',
  arguments: [{ name: 'path', description: 'A kind, or a field path such as RolloutGroup.spec.scaling.down.', completes: 'schemaPath' }],
  options: [outputOption('table', 'jsonschema', 'crd')],
  examples: ['schema', 'schema RolloutGroup.spec.rollout', 'schema RolloutPolicy -o jsonschema'],
  exits: { 10: 'the kind or field does not exist' },
  load: async () => (await import('../commands/schema.ts')).run,
};

const test: Verb = {
  name: 'test',
  summary: 'Run the PolicyTests next to the policies',
  arguments: [
    {
      name: 'paths',
      description: 'Files or directories with PolicyTests; default: the current directory.',
      isVariadic: true,
      completes: 'file',
    },
  ],
  options: [
    outputOption('text', 'json', 'junit', 'markdown', 'tap'),
    { flags: '--run <name>', description: 'Run only the cases whose name contains this text.' },
    { flags: '--coverage', description: 'Show for each rule in how many cases it blocked and in how many it passed.' },
    { flags: '--allow-empty', description: 'Succeed if no case is found.' },
    agentNamespaceOption,
  ],
  examples: ['test examples/', 'test examples/ --run "shrink" -o junit', 'test --coverage'],
  exits: { 4: 'a case failed', 10: 'no case was found' },
  load: async () => (await import('../commands/test.ts')).run,
};

const init: Verb = {
  name: 'init',
  summary: 'Write policy files for existing StatefulSets',
  description:
    'Reads groups from the labels and objects of other rollout operators. If it finds no such group, or with --guess, it also proposes groups and says why. StatefulSets whose names or zones belong together form one proposed group; each remaining StatefulSet forms a proposed group alone.',
  options: [
    { flags: '--from-dir <source>', description: 'Read manifests: a directory, a file, - or git:REV[:PATH].', completes: 'source' },
    { flags: '--from-cluster', description: 'Read StatefulSets and other objects from the cluster.' },
    namespaceOption,
    { ...allNamespacesOption, description: 'With --from-cluster: StatefulSets in all namespaces.' },
    { flags: '--out <directory>', description: 'Directory for the policy files.', isRequired: true, completes: 'directory' },
    {
      flags: '--guess',
      description: 'Also propose groups for StatefulSets without group labels. This is the default if labels and objects define no group.',
    },
    { flags: '--force', description: 'Overwrite existing files.' },
  ],
  examples: ['init --from-dir manifests/ --out policies/', 'init --from-cluster -n mimir --out policies/'],
  exits: {
    4: 'an annotation or object is not valid and was left out',
    10: 'no group was found',
    11: 'permission is missing, or a file is not writable',
  },
  usesCluster: true,
  load: async () => (await import('../commands/init.ts')).run,
};

export const authorVerbs: readonly Verb[] = [init, lint, fmt, test, schema];
