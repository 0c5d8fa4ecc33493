// The texts of verbs, flags and arguments that the help and the documentation share.
import type { ArgumentSpec, OptionSpec, Verb } from './verb.ts';

/** The command that users type. */
export const programName = 'kubectl rollout-group';

/** Returns the usage line of a verb, for example `kubectl rollout-group lint [FILES...] [flags]`. */
export function usageText({ name, arguments: values = [] }: Verb): string {
  const shown = values.map((value) => {
    const word = `${value.name.toUpperCase()}${value.isVariadic === true ? '...' : ''}`;
    return value.isRequired === true ? word : `[${word}]`;
  });
  return [programName, name, ...shown, '[flags]'].join(' ');
}

export function argumentText({ description, choices }: ArgumentSpec): string {
  return `${description}${choicesText(choices)}`;
}

export function optionText({ description, choices, default: standard, isRepeatable, isRequired }: OptionSpec): string {
  const notes = [
    isRequired === true ? ' Required.' : '',
    isRepeatable === true ? ' Repeatable.' : '',
    choicesText(choices),
    standard === undefined ? '' : ` Default: ${standard}.`,
  ];
  return `${description}${notes.join('')}`;
}

function choicesText(choices: readonly string[] | undefined): string {
  return choices === undefined ? '' : ` One of ${choices.join(', ')}.`;
}
