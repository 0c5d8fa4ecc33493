// Results for programs: one envelope, as JSON, YAML or one JSON object per line.
import type { OutputStream } from '../context.ts';

/** The version of what programs read; additions keep it, changes raise it. */
const cliApiVersion = 'rollout-group.dev/cli/v1';

/** A result with its kind; keys are printed in the order in which they stand. */
export interface ResultDocument {
  readonly kind: string;
  readonly [key: string]: unknown;
}

/** Prints one result. The YAML writer is loaded only when it is needed. */
export async function writeDocument(stream: OutputStream, format: 'json' | 'yaml', document: ResultDocument): Promise<void> {
  const enveloped = { apiVersion: cliApiVersion, ...document };
  if (format === 'json') stream.write(`${JSON.stringify(enveloped, null, 2)}\n`);
  else stream.write((await import('./yaml.ts')).toYaml(enveloped));
}

/** Prints one object per line, each with its own envelope. */
export function writeLines(stream: OutputStream, documents: readonly ResultDocument[]): void {
  for (const document of documents) stream.write(`${JSON.stringify({ apiVersion: cliApiVersion, ...document })}\n`);
}
