// Codes RG1001 to RG1099: what is wrong with a file before its meaning is looked at.
export const syntaxCodes = {
  RG1001: {
    title: 'The file is too large',
    severity: 'error',
    explanation:
      'A policy file may hold at most 1 MiB. Larger files are refused before they are parsed, so that no file can keep lint, the agent or a pull request busy.',
    hint: 'split the file',
  },
  RG1002: {
    title: 'The file holds too many documents',
    severity: 'error',
    explanation: 'A file may hold at most 500 YAML documents. The rest of the file is not read, so its policies would silently be missing.',
    hint: 'split the file',
  },
  RG1003: {
    title: 'The document is nested too deeply',
    severity: 'error',
    explanation:
      'Collections may be nested 64 deep. No policy needs a tenth of that; deeper nesting is either a slip of indentation or an attempt to exhaust the parser.',
  },
  RG1004: {
    title: 'The text is not valid YAML',
    severity: 'error',
    explanation:
      'The parser could not make sense of the text at this place. Nothing of the document is used, because a half-read policy protects only half.',
  },
  RG1005: {
    title: 'The YAML is ambiguous',
    severity: 'error',
    explanation:
      'The parser understood the text but warned about it, most often because of a tag that it does not know. A tag that is dropped changes the value without a trace, so warnings count as errors in policy files.',
    hint: 'quote the value, or leave the tag out',
  },
  RG1006: {
    title: 'A key appears twice',
    severity: 'error',
    explanation:
      'A mapping names the same key more than once. Which value wins depends on the reader: the API server keeps one of them without saying so.',
    hint: 'keep one of them, or put a line --- between them when another document begins here',
  },
  RG1007: {
    title: 'Anchors and aliases are not used in policies',
    severity: 'error',
    explanation:
      'An alias makes a line mean something that is written elsewhere, and a few hundred of them can expand to more than memory holds. Policies say everything where it applies. In other Kubernetes objects aliases are expanded up to a limit.',
    hint: 'write the value out',
  },
  RG1008: {
    title: 'Merge keys are not used in policies',
    severity: 'error',
    explanation:
      'The merge key `<<` belongs to YAML 1.1 only. Readers of YAML 1.2 see an ordinary key of that name, so two tools would read two different policies.',
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
      'YAML reads a plain `!`, `!!`, `!=` or `!==` as a tag. The operator disappears, its arguments stay, and a negated condition becomes its opposite.',
    hint: 'quote the operator, as in "!": [...]',
  },
  RG1011: {
    title: 'The key is not allowed',
    severity: 'error',
    explanation:
      'The keys `__proto__`, `constructor` and `prototype` have a meaning of their own in JavaScript objects. No field of a policy has such a name, so they are refused wherever they appear.',
  },
  RG1012: {
    title: 'The document is not a Kubernetes object',
    severity: 'error',
    explanation:
      'Every document of a policy directory is a mapping with `apiVersion` and `kind`. A document without them would be skipped, and a policy that is skipped protects nothing.',
    hint: 'add apiVersion and kind, or move the file out of the directory',
  },
  RG1013: {
    title: 'A plain number means different things in YAML 1.1 and 1.2',
    severity: 'error',
    explanation:
      'Numbers with a leading zero, with underscores or in binary are read differently by the two versions of YAML: `010` is ten in one and eight in the other. Tools of the Kubernetes world use both.',
    hint: 'write the number in plain decimal, or quote it',
  },
  RG1014: {
    title: 'A key is not text',
    severity: 'error',
    explanation:
      'Keys of a Kubernetes object are text. A number, a boolean, a list or an empty key has no counterpart in JSON and is converted differently by every tool.',
    hint: 'quote the key',
  },
} as const;
