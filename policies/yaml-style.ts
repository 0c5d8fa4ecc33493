// How we write YAML: two spaces, long lines left whole, and quotes around what an older YAML reader would not take for text.
import type { DocumentOptions, ParseOptions, SchemaOptions, ToStringOptions } from 'yaml';

/**
 * Options of a document that is to be written. Kubernetes reads YAML with rules of version 1.1, in which `on`, `y` and `0777` are no
 * texts, so such texts are quoted.
 */
export const documentStyle = { version: '1.2', compat: 'yaml-1.1', logLevel: 'silent' } as const satisfies DocumentOptions &
  SchemaOptions &
  ParseOptions;

/** Options of writing a document as text. */
export const textStyle = {
  indent: 2,
  indentSeq: true,
  lineWidth: 0,
  flowCollectionPadding: true,
  nullStr: 'null',
} as const satisfies ToStringOptions;

/** A flow collection on a longer line is written as a block. */
export const longestFlowLine = 120;
