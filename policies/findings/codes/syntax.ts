// Codes RG1001 to RG1099: errors in the text of a file.
export const syntaxCodes = {
  RG1001: {
    title: 'The file is too large',
    severity: 'error',
    explanation:
      'A policy file may have at most 1 MiB. A larger file is not parsed, so that it cannot slow down lint, the agent or a pull request check.',
    hint: 'split the file',
  },
  RG1002: {
    title: 'The file has too many documents',
    severity: 'error',
    explanation: 'A file may have at most 500 YAML documents. The rest of the file is not read, so its policies would be missing.',
    hint: 'split the file',
  },
  RG1003: {
    title: 'The document is nested too deeply',
    severity: 'error',
    explanation: 'Collections may be nested 64 levels deep. Deeper nesting is a wrong indentation or an attempt to exhaust the parser.',
  },
  RG1004: {
    title: 'The text is not valid YAML',
    severity: 'error',
    explanation: 'The parser cannot read the text at this place. The whole document is ignored, because half a policy protects only half.',
  },
  RG1005: {
    title: 'The YAML is ambiguous',
    severity: 'error',
    explanation:
      'The parser reads the text but warns about it, most often because of an unknown tag. A dropped tag silently changes the value, so warnings are errors in policy files.',
    hint: 'quote the value, or remove the tag',
  },
  RG1006: {
    title: 'A key appears twice',
    severity: 'error',
    explanation:
      'A mapping has the same key more than once. Readers differ in which value they use: the API server silently keeps one of them.',
    hint: 'keep one of them, or put a line --- between them if another document begins here',
  },
  RG1007: {
    title: 'Anchors and aliases are not allowed in policies',
    severity: 'error',
    explanation:
      'An alias hides the value of a field, and a few hundred aliases can expand to more than the available memory. In other Kubernetes objects aliases are expanded up to a limit.',
    hint: 'write the value out',
  },
  RG1008: {
    title: 'Merge keys are not allowed in policies',
    severity: 'error',
    explanation:
      'The merge key `<<` exists only in YAML 1.1. In YAML 1.2 it is an ordinary key, so two tools could read two different policies.',
    hint: 'write the fields out',
  },
  RG1009: {
    title: 'A plain word is a boolean in YAML 1.1',
    severity: 'error',
    explanation:
      'The plain words y, n, yes, no, on and off are text in YAML 1.2 and booleans in YAML 1.1. The YAML library of Kubernetes turns the key `on` into `true`, so the object in the cluster would differ from the file.',
    hint: 'quote it, or write true or false',
  },
  RG1010: {
    title: 'An operator that starts with an exclamation mark needs quotes',
    severity: 'error',
    explanation:
      'YAML reads a plain `!`, `!!`, `!=` or `!==` as a tag. The operator disappears, its arguments stay, and the condition means the opposite.',
    hint: 'quote the operator, as in "!": [...]',
  },
  RG1011: {
    title: 'The key is not allowed',
    severity: 'error',
    explanation:
      'The keys `__proto__`, `constructor` and `prototype` have a special meaning in JavaScript. No field of a policy has such a name.',
  },
  RG1012: {
    title: 'The document is not a Kubernetes object',
    severity: 'error',
    explanation:
      'Every document in a policy directory is a mapping with `apiVersion` and `kind`. A document without them would be skipped and protect nothing.',
    hint: 'add apiVersion and kind, or move the file out of the directory',
  },
  RG1013: {
    title: 'A plain number means different things in YAML 1.1 and 1.2',
    severity: 'error',
    explanation:
      'The two YAML versions differ in numbers with a leading zero, with underscores or in binary: `010` is ten in one and eight in the other. Kubernetes tools use both versions.',
    hint: 'write the number in plain decimal, or quote it',
  },
  RG1014: {
    title: 'A key is not text',
    severity: 'error',
    explanation:
      'Keys of a Kubernetes object are text. A number, a boolean, a list or an empty key has no equivalent in JSON, and each tool converts it differently.',
    hint: 'quote the key',
  },
} as const;
