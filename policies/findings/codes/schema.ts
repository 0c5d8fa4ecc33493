// Codes RG2001 to RG2099: values that the schema of a kind does not allow.
export const schemaCodes = {
  RG2001: {
    title: 'The kind does not exist',
    severity: 'error',
    explanation:
      'The API group rollout-group.dev has no kind of this name. The document would protect nothing, so it is an error and not skipped.',
  },
  RG2002: {
    title: 'The version of the API group does not exist',
    severity: 'error',
    explanation:
      'This program reads one version of the API group rollout-group.dev. A document of another version may mean something else by the same words, so none of it is used.',
    hint: 'set apiVersion to rollout-group.dev/v1alpha1',
  },
  RG2003: {
    title: 'The field does not exist',
    severity: 'error',
    explanation:
      'The kind has no field of this name at this place. The API server would drop it without a word and the setting would never act.',
  },
  RG2004: {
    title: 'A required field is missing',
    severity: 'error',
    explanation: 'The field has no default, because no value would be safe for everybody. The document is not used until it is there.',
  },
  RG2005: {
    title: 'The value has the wrong type',
    severity: 'error',
    explanation:
      'The field holds another type than its schema says, for example text where a number belongs. Quoted numbers are text in YAML; a list item needs its dash.',
  },
  RG2006: {
    title: 'The value is not one of the allowed ones',
    severity: 'error',
    explanation: 'The field takes one of a few words, in exactly this spelling. The message lists them.',
  },
  RG2007: {
    title: 'The value has the wrong form',
    severity: 'error',
    explanation:
      'The text does not have the form that the field needs: a duration such as 30s or 1h30m, a percentage such as 10%, a name of lower-case letters, digits and dashes, or an instant with an offset such as 2026-12-18T18:00:00+01:00.',
  },
  RG2008: {
    title: 'The value is out of range',
    severity: 'error',
    explanation: 'The number is too small or too large, or the text or list too short or too long. The message names the bound.',
  },
  RG2009: {
    title: 'Fields exclude each other',
    severity: 'error',
    explanation:
      'Some fields are alternatives: exactly one of them says what is meant. With two of them one would have to be ignored, with none of them there is nothing to act on.',
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
    explanation: 'One field needs another one beside it, or has no effect beside it. What was meant cannot be told, so nothing is guessed.',
  },
} as const;
