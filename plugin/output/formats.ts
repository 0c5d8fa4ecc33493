// Writes results for programs in one envelope, as JSON, YAML or one JSON object per line.
import type { OutputStream } from '../context.ts';

/** Version of the output for programs. Additions keep the version, other changes raise it. */
const cliApiVersion = 'rollout-group.dev/cli/v1';

/** A result with its kind. Keys are printed in their order. */
export interface ResultDocument {
  readonly kind: string;
  readonly [key: string]: unknown;
}

/** Writes one result. Loads the YAML writer only if needed. */
export async function writeDocument(stream: OutputStream, format: 'json' | 'yaml', document: ResultDocument): Promise<void> {
  const enveloped = { apiVersion: cliApiVersion, ...document };
  if (format === 'json') stream.write(`${JSON.stringify(enveloped, null, 2)}\n`);
  else stream.write((await import('./yaml.ts')).toYaml(enveloped));
}

/** Writes one object per line, each with its envelope. */
export function writeLines(stream: OutputStream, documents: readonly ResultDocument[]): void {
  for (const document of documents) stream.write(`${JSON.stringify({ apiVersion: cliApiVersion, ...document })}\n`);
}
