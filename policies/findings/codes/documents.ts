// Defines the codes RG1xxx, RG20xx and RG3xxx: problems in the text of a file, in the values of a document and in its conditions.
export const documentCodes = {
  RG1001: {
    title: 'The file is too large',
    explanation:
      'A policy file may have at most 1 MiB. A larger file is not parsed, so that it cannot slow down lint, the agent or a pull request check.',
    hint: 'split the file',
  },
  RG1002: {
    title: 'The file has too many documents',
    explanation:
      'A file may have at most 500 YAML documents. A file with more documents is rejected as a whole, so none of its policies is used.',
    hint: 'split the file',
  },
  RG1003: {
    title: 'The document is nested too deeply',
    explanation: 'Collections may be nested up to 64 levels deep. Deeper nesting is a wrong indentation or an attack on the parser.',
  },
  RG1004: {
    title: 'The text is not valid YAML',
    explanation:
      'The parser cannot read the text at this place. The whole document is ignored, because the rest of a policy could permit too much.',
  },
  RG1005: {
    title: 'The YAML is ambiguous',
    explanation:
      'The parser reads the text but warns about it, most often because of an unknown tag. A dropped tag silently changes the value, so warnings are errors in policy files.',
    hint: 'quote the value, or remove the tag',
  },
  RG1006: {
    title: 'A key appears twice',
    explanation:
      'A mapping has the same key more than once. Readers differ in which value they use: without strict field validation, the API server keeps one of them.',
    hint: 'keep one of them, or put a line --- between them if another document begins here',
  },
  RG1007: {
    title: 'Anchors and aliases are not allowed in policies',
    explanation:
      'An alias hides the value of a field, and a few hundred aliases can expand to more than the available memory. In other Kubernetes objects aliases are expanded up to a limit.',
    hint: 'write the value out',
  },
  RG1008: {
    title: 'Merge keys are not allowed in policies',
    explanation:
      'The merge key `<<` exists only in YAML 1.1. In YAML 1.2 it is an ordinary key, so two tools could read two different policies.',
    hint: 'write the fields out',
  },
  RG1009: {
    title: 'A plain word is a boolean in YAML 1.1',
    explanation:
      'The plain words y, n, yes, no, on and off are text in YAML 1.2 and booleans in YAML 1.1. The YAML library of Kubernetes turns the key `on` into `true`, so the object in the cluster would differ from the file.',
    hint: 'quote it, or write true or false',
  },
  RG1010: {
    title: 'An operator that starts with an exclamation mark needs quotes',
    explanation:
      'YAML reads a plain `!`, `!!`, `!=` or `!==` as a tag. The operator disappears, its arguments stay, and the meaning of the condition changes.',
    hint: 'quote the operator, as in "!": [...]',
  },
  RG1011: {
    title: 'The key is not allowed',
    explanation:
      'The keys `__proto__`, `constructor` and `prototype` have a special meaning in JavaScript. No field of a policy has such a name.',
  },
  RG1012: {
    title: 'The document is not a Kubernetes object',
    explanation:
      'Every document in a policy directory is a mapping with `apiVersion` and `kind`. A document without them would be skipped and protect nothing.',
    hint: 'add apiVersion and kind, or move the file out of the directory',
  },
  RG1013: {
    title: 'A plain number means different things in YAML 1.1 and 1.2',
    explanation:
      'The two YAML versions differ in numbers with a leading zero, with underscores or in binary: `010` is eight in YAML 1.1 and ten in YAML 1.2. Kubernetes tools use both versions.',
    hint: 'write the number in plain decimal, or quote it',
  },
  RG1014: {
    title: 'A key is not text',
    explanation:
      'Keys of a Kubernetes object are text. A number, a boolean, a list or an empty key has no equivalent in JSON, and each tool converts it differently.',
    hint: 'quote the key',
  },
  RG2001: {
    title: 'The kind does not exist',
    explanation:
      'The API group rollout-group.dev has no kind of this name. The document would protect nothing, so it is not skipped silently.',
  },
  RG2002: {
    title: 'The version of the API group does not exist',
    explanation:
      'This program reads one version of the API group rollout-group.dev. Another version may give the same fields another meaning, so the document is not used.',
    hint: 'set apiVersion to rollout-group.dev/v1alpha1',
  },
  RG2003: {
    title: 'The field does not exist',
    explanation:
      'The kind has no field of this name here. Without strict field validation, the API server drops the field, and the setting has no effect.',
  },
  RG2004: {
    title: 'A required field is missing',
    explanation: 'The field has no default. The document is not used without it.',
  },
  RG2005: {
    title: 'The value has the wrong type',
    explanation:
      'The schema requires another type, for example a number instead of text. In YAML a quoted number is text, and a list item begins with a dash.',
  },
  RG2006: {
    title: 'The value is not allowed',
    explanation: 'The field takes one of a few words. The message lists these words in their exact spelling.',
  },
  RG2007: {
    title: 'The value has the wrong form',
    explanation:
      'The text does not have the form of the field. Examples: a duration such as 30s or 1h30m, a percentage such as 10%, an instant with an offset such as 2026-12-18T18:00:00+01:00. A name has lower-case letters, digits and dashes; the name of an object may also have dots.',
  },
  RG2008: {
    title: 'The value is out of range',
    explanation: 'The number is too small or too large, or the text or list is too short or too long. The message names the limit.',
  },
  RG2009: {
    title: 'Fields exclude each other',
    explanation:
      'The fields are alternatives, so at most one of them is allowed. If the message says that the fields are missing, one of them is required.',
    hint: 'keep only one of them',
  },
  RG2010: {
    title: 'The instant does not exist',
    explanation: 'The text has the form of an instant, but the calendar has no such day or the clock no such time.',
  },
  RG2011: {
    title: 'The fields do not go together',
    explanation: 'One field requires another field, or has no effect together with another field. So the intention is not clear.',
  },
  RG3001: {
    title: 'The operator does not exist',
    explanation:
      'Conditions have no operator of this name. At run time the operation would fail, or count as data, and data is always true.',
  },
  RG3002: {
    title: 'The operator is not allowed',
    explanation:
      'Other JsonLogic implementations have this operator. Conditions of policies and gates cannot use it. The message names the reason or an alternative. For example, `log` has a side effect, and regular expressions can take exponential time.',
  },
  RG3003: {
    title: 'An operation needs exactly one operator',
    explanation:
      'JsonLogic treats an object with two keys, or without a key, as data, and data is always true. A wrong indentation can thus make a condition always true.',
    hint: 'write one operator per object, and join them with and or or',
  },
  RG3004: {
    title: 'The operator has the wrong number of arguments',
    explanation:
      'JsonLogic silently ignores surplus arguments and reads missing ones as null. The message names the number of arguments that the operator takes.',
  },
  RG3005: {
    title: 'An argument has the wrong type',
    explanation:
      'JsonLogic silently converts the value, for example text that is compared with a number. The result is then not what the condition says.',
  },
  RG3006: {
    title: 'The variable does not exist',
    explanation: 'A condition or a message names a variable that does not exist. The value of this variable is always unknown.',
  },
  RG3007: {
    title: 'The path of a variable must be literal',
    explanation: 'Another operation computes the path of a variable. The inputs of such a condition cannot be checked in advance.',
    hint: 'write the path as text',
  },
  RG3008: {
    title: 'The condition is too large',
    explanation:
      'The number of nodes in a condition is limited, because the webhook evaluates it for every request. The message names the limit.',
    hint: 'split the condition into several rules',
  },
  RG3009: {
    title: 'The condition is nested too deeply',
    explanation: 'The nesting depth of a condition is limited, so that no condition can exhaust the stack. The message names the limit.',
    hint: 'split the condition into several rules',
  },
  RG3010: {
    title: 'A literal is too long',
    explanation: 'The length of a text in a condition is limited. The message names the limit.',
  },
  RG3011: {
    title: 'A list is too long',
    explanation: 'The number of items of a list in a condition is limited. The message names the limit.',
  },
  RG3012: {
    title: 'The condition is constant',
    severity: 'warning',
    explanation: 'The condition reads no variable, so its result is always the same. A rule that always applies needs no condition.',
    hint: 'read a variable, or remove the condition',
  },
} as const;
