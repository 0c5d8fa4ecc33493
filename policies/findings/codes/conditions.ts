// Codes RG3001 to RG3099: conditions that cannot be decided as written.
export const conditionCodes = {
  RG3001: {
    title: 'The operator does not exist',
    severity: 'error',
    explanation:
      'The dialect has no operator of this name. Evaluating it would either fail at the worst moment or treat the object as data, which counts as true.',
  },
  RG3002: {
    title: 'The operator is not part of the dialect',
    severity: 'error',
    explanation:
      'Other JsonLogic implementations have this operator; here it is left out on purpose. `log` has a side effect, `method` calls code of the host, and regular expressions can take exponential time. Conditions must be pure and bounded, because they are decided inside admission.',
  },
  RG3003: {
    title: 'An operation needs exactly one operator',
    severity: 'error',
    explanation:
      'JsonLogic takes an object with two keys, or with none, for data, and data counts as true. A slip of indentation would turn a condition into one that always holds.',
    hint: 'write one operator per object, joined by and or or',
  },
  RG3004: {
    title: 'The operator has the wrong number of arguments',
    severity: 'error',
    explanation:
      'Surplus arguments would be ignored and missing ones taken for null, both without a trace. The message says how many the operator takes.',
  },
  RG3005: {
    title: 'An argument has the wrong type',
    severity: 'error',
    explanation:
      'The operator would convert the value silently, as when text is compared with a number, and the answer would be one that nobody meant.',
  },
  RG3006: {
    title: 'The variable does not exist',
    severity: 'error',
    explanation:
      'The condition reads a variable that nobody provides. It would be unknown for ever, so that the rule either always or never applies.',
  },
  RG3007: {
    title: 'The path of a variable must be written out',
    severity: 'error',
    explanation:
      'The path of a variable is computed by another operation. Then it cannot be checked beforehand which inputs the condition reads.',
    hint: 'write the path as text',
  },
  RG3008: {
    title: 'The condition is too large',
    severity: 'error',
    explanation: 'A condition may have a limited number of nodes, because it is decided for every request. The message names the limit.',
    hint: 'split it into several rules',
  },
  RG3009: {
    title: 'The condition is nested too deeply',
    severity: 'error',
    explanation: 'Operations may be nested to a limited depth, so that no condition can exhaust the stack. The message names the limit.',
    hint: 'split it into several rules',
  },
  RG3010: {
    title: 'A literal is too long',
    severity: 'error',
    explanation: 'A text in a condition may have a limited length. Longer text is data, not a condition.',
  },
  RG3011: {
    title: 'A list is too long',
    severity: 'error',
    explanation: 'A list in a condition may have a limited number of items. Longer lists are data, not a condition.',
  },
  RG3012: {
    title: 'The condition is constant',
    severity: 'warning',
    explanation:
      'The condition reads no variable, so that it always has the same answer. A rule that always applies is written without a condition.',
    hint: 'read a variable, or leave the condition out',
  },
} as const;
