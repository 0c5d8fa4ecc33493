// The verbs for people who write policy files.
import { allNamespacesOption, namespaceOption } from './connection.ts';
import { agentNamespaceOption, fileOption, outputOption, type Verb } from './verb.ts';

const lint: Verb = {
  name: 'lint',
  group: 'Author',
  summary: 'Check policies and manifests, with the place of every finding',
  description:
    'Checks syntax, schema and meaning, also across files. Errors and warnings fail; notices say what only the agent can know and never fail.',
  arguments: [{ name: 'files', description: 'Files, directories, - or git:REV[:PATH].', isVariadic: true, completes: 'source' }],
  options: [
    fileOption,
    outputOption('text', 'json', 'jsonl', 'sarif', 'junit', 'github', 'markdown'),
    { flags: '--strict', description: 'Notices fail too.' },
    agentNamespaceOption,
  ],
  examples: ['lint policies/ manifests/', 'lint git:HEAD:policies -o sarif', 'lint - < group.yaml'],
  exits: { 4: 'there are errors or warnings', 10: 'a file or a revision does not exist' },
  load: async () => (await import('../commands/lint.ts')).run,
};

const fmt: Verb = {
  name: 'fmt',
  group: 'Author',
  summary: 'Bring policy files into one form, keeping comments',
  description: 'Prints the result; with --write it changes the files, with --check it only names those that would change.',
  arguments: [{ name: 'files', description: 'Files, directories or -.', isVariadic: true, isRequired: true, completes: 'file' }],
  options: [
    { flags: '--check', description: 'Name the files that are not in form and fail.' },
    { flags: '--write', description: 'Change the files in place.' },
  ],
  examples: ['fmt --write policies/', 'fmt --check policies/', 'fmt - < group.yaml'],
  exits: { 4: 'with --check: a file is not in form; a file cannot be read as YAML', 10: 'a file does not exist' },
  load: async () => (await import('../commands/fmt.ts')).run,
};

const schema: Verb = {
  name: 'schema',
  group: 'Author',
  summary: 'Show the fields of a kind, or its JSON Schema or CRD',
  description: 'Documents fields. For why a group waits, see explain.',
  arguments: [{ name: 'path', description: 'A kind, or a field of it: RolloutGroup.spec.scaling.down.', completes: 'schemaPath' }],
  options: [outputOption('table', 'jsonschema', 'crd')],
  examples: ['schema', 'schema RolloutGroup.spec.rollout', 'schema RolloutPolicy -o jsonschema'],
  exits: { 10: 'there is no such kind or field' },
  load: async () => (await import('../commands/schema.ts')).run,
};

const test: Verb = {
  name: 'test',
  group: 'Author',
  summary: 'Run the PolicyTests beside the policies',
  arguments: [
    {
      name: 'paths',
      description: 'Files or directories with PolicyTests; this directory when left out.',
      isVariadic: true,
      completes: 'file',
    },
  ],
  options: [
    outputOption('text', 'json', 'junit', 'markdown', 'tap'),
    { flags: '--run <name>', description: 'Only the cases whose name contains this text.' },
    { flags: '--coverage', description: 'Show which rules were seen to allow and to refuse.' },
    { flags: '--allow-empty', description: 'Finding no case is no failure.' },
    agentNamespaceOption,
  ],
  examples: ['test examples/', 'test examples/ --run "shrink" -o junit', 'test --coverage'],
  exits: { 4: 'a case failed', 10: 'no case was found' },
  load: async () => (await import('../commands/test.ts')).run,
};

const init: Verb = {
  name: 'init',
  group: 'Author',
  summary: 'Write policy files for the StatefulSets that there are',
  description:
    'Takes groups from the labels and objects of other rollout operators. Where there are none, or with --guess beside them, it proposes groups of StatefulSets whose names or zones say that they belong together, each with how it was guessed; the others become groups of one zone.',
  options: [
    { flags: '--from-dir <source>', description: 'Manifests: a directory, a file, - or git:REV[:PATH].', completes: 'source' },
    { flags: '--from-cluster', description: 'The StatefulSets and objects of the cluster, instead of manifests.' },
    namespaceOption,
    allNamespacesOption,
    { flags: '--out <directory>', description: 'Where the policy files go.', isRequired: true, completes: 'directory' },
    { flags: '--guess', description: 'Also propose groups of StatefulSets that nobody has labelled; without labels that is done anyhow.' },
    { flags: '--force', description: 'Overwrite files that exist.' },
  ],
  examples: ['init --from-dir manifests/ --out policies/', 'init --from-cluster -n mimir --out policies/'],
  exits: {
    4: 'an annotation or an object cannot be understood, and what it says is left out',
    10: 'no group was found',
    11: 'permission is missing, or a file cannot be written',
    12: 'the cluster cannot be reached',
  },
  usesCluster: true,
  load: async () => (await import('../commands/init.ts')).run,
};

export const authorVerbs: readonly Verb[] = [init, lint, fmt, test, schema];
