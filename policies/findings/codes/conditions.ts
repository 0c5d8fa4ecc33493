// Codes RG3001 to RG3099: JsonLogic conditions that cannot be evaluated as written.
export const conditionCodes = {
  RG3001: {
    title: 'The operator does not exist',
    severity: 'error',
    explanation: 'JsonLogic has no operator of this name here. At run time it would fail, or count as data, which is always true.',
  },
  RG3002: {
    title: 'The operator is not allowed',
    severity: 'error',
    explanation:
      'Other JsonLogic implementations have this operator. It is not allowed here because admission evaluates conditions, so they must be pure and bounded. `log` has a side effect, `method` calls host code, and regular expressions can take exponential time.',
  },
  RG3003: {
    title: 'An operation needs exactly one operator',
    severity: 'error',
    explanation:
      'JsonLogic treats an object with two keys, or without a key, as data, and data is always true. A wrong indentation can thus make a condition always true.',
    hint: 'write one operator per object, and join them with and or or',
  },
  RG3004: {
    title: 'The operator has the wrong number of arguments',
    severity: 'error',
    explanation:
      'JsonLogic silently ignores surplus arguments and reads missing ones as null. The message names the number of arguments that the operator takes.',
  },
  RG3005: {
    title: 'An argument has the wrong type',
    severity: 'error',
    explanation:
      'JsonLogic silently converts the value, for example text that is compared with a number. The result is then not what the condition says.',
  },
  RG3006: {
    title: 'The variable does not exist',
    severity: 'error',
    explanation:
      'The condition reads a variable that has no value. The variable is always unknown, so the rule either always applies or never.',
  },
  RG3007: {
    title: 'The path of a variable must be literal',
    severity: 'error',
    explanation: 'Another operation computes the path of a variable. The inputs of such a condition cannot be checked in advance.',
    hint: 'write the path as text',
  },
  RG3008: {
    title: 'The condition is too large',
    severity: 'error',
    explanation:
      'The number of nodes in a condition is limited, because the webhook evaluates it for every request. The message names the limit.',
    hint: 'split the condition into several rules',
  },
  RG3009: {
    title: 'The condition is nested too deeply',
    severity: 'error',
    explanation: 'The nesting depth of a condition is limited, so that no condition can exhaust the stack. The message names the limit.',
    hint: 'split the condition into several rules',
  },
  RG3010: {
    title: 'A literal is too long',
    severity: 'error',
    explanation: 'The length of a text in a condition is limited. The message names the limit.',
  },
  RG3011: {
    title: 'A list is too long',
    severity: 'error',
    explanation: 'The number of items of a list in a condition is limited. The message names the limit.',
  },
  RG3012: {
    title: 'The condition is constant',
    severity: 'warning',
    explanation: 'The condition reads no variable, so its result is always the same. A rule that always applies needs no condition.',
    hint: 'read a variable, or remove the condition',
  },
} as const;
