// Codes RG2001 to RG2099: values that the schema of a kind does not allow.
export const schemaCodes = {
  RG2001: {
    title: 'The kind does not exist',
    severity: 'error',
    explanation:
      'The API group rollout-group.dev has no kind of this name. The document would protect nothing, so it is not skipped silently.',
  },
  RG2002: {
    title: 'The version of the API group does not exist',
    severity: 'error',
    explanation:
      'This program reads one version of the API group rollout-group.dev. Another version may give the same fields another meaning, so the document is not used.',
    hint: 'set apiVersion to rollout-group.dev/v1alpha1',
  },
  RG2003: {
    title: 'The field does not exist',
    severity: 'error',
    explanation: 'The kind has no field of this name here. The API server would drop it silently, and the setting would have no effect.',
  },
  RG2004: {
    title: 'A required field is missing',
    severity: 'error',
    explanation: 'The field has no default, because no value is safe for every group. The document is not used without it.',
  },
  RG2005: {
    title: 'The value has the wrong type',
    severity: 'error',
    explanation:
      'The schema requires another type, for example a number instead of text. In YAML a quoted number is text, and a list item begins with a dash.',
  },
  RG2006: {
    title: 'The value is not allowed',
    severity: 'error',
    explanation: 'The field takes one of a few words in exactly this spelling. The message lists them.',
  },
  RG2007: {
    title: 'The value has the wrong form',
    severity: 'error',
    explanation:
      'The text does not have the form of the field. Examples: a duration such as 30s or 1h30m, a percentage such as 10%, an instant with an offset such as 2026-12-18T18:00:00+01:00. A name has lower-case letters, digits and dashes.',
  },
  RG2008: {
    title: 'The value is out of range',
    severity: 'error',
    explanation: 'The number is too small or too large, or the text or list is too short or too long. The message names the limit.',
  },
  RG2009: {
    title: 'Fields exclude each other',
    severity: 'error',
    explanation: 'The fields are alternatives, and exactly one of them is required.',
    hint: 'keep exactly one of them',
  },
  RG2010: {
    title: 'The instant does not exist',
    severity: 'error',
    explanation: 'The text has the form of an instant, but the calendar has no such day or the clock no such time.',
  },
  RG2011: {
    title: 'The fields do not go together',
    severity: 'error',
    explanation:
      'One field requires another field, or has no effect together with it. The intention is not clear, so the document is not used.',
  },
} as const;
