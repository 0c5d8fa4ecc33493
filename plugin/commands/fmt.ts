// The verb fmt: formats policy files.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Finding } from '../../policies/findings/finding.ts';
import { formatText } from '../../policies/format.ts';
import { counted } from '../../policies/wording.ts';
import { parseDocuments } from '../../policies/yaml/document.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, unwritable, usageFailure } from '../failure.ts';
import { findingBlocks } from '../output/findings.ts';
import { type InputFile, readInputs } from '../source/input.ts';

export interface FmtOptions {
  readonly files: readonly string[];
  readonly check?: boolean;
  readonly write?: boolean;
}

interface Formatted extends InputFile {
  readonly formatted: string;
  /** The syntax errors. A file with errors is not changed. */
  readonly errors: readonly Finding[];
}

export async function run(context: CommandContext, { files, check = false, write = false }: FmtOptions): Promise<ExitCode> {
  if (check && write) throw usageFailure('--check and --write exclude each other', 'kubectl rollout-group fmt --help');
  if (write) refuseUnwritable(files);
  // JSON files are usually generated and have no comments, so they are not formatted.
  const inputs = (await readInputs(files, context)).filter(({ name }) => !name.toLowerCase().endsWith('.json'));
  const results = inputs.map(format);
  const errors = results.flatMap((result) => result.errors);
  for (const block of findingBlocks(errors, context.stderr)) context.stderr.write(`${block}\n`);
  const changed = results.filter(({ text, formatted }) => formatted !== text);
  if (check) reportUnformatted(context, changed);
  else if (write) writeBack(context, changed);
  else print(context, results);
  return errors.length > 0 || (check && changed.length > 0) ? exitCodes.findings : exitCodes.done;
}

function format({ name, text }: InputFile): Formatted {
  const { documents, findings } = parseDocuments(name, text);
  const errors = [...findings, ...documents.flatMap((document) => document.errors)];
  return { name, text, errors, formatted: errors.length > 0 ? text : formatText(text) };
}

function refuseUnwritable(files: readonly string[]): void {
  const readOnlySource = files.find((file) => file === '-' || file.startsWith('git:'));
  if (readOnlySource !== undefined) throw usageFailure(`${readOnlySource} is not writable`, 'omit --write to print the result');
}

function reportUnformatted({ stdout, stderr, quiet }: CommandContext, changed: readonly Formatted[]): void {
  for (const { name } of changed) stdout.write(`${name}\n`);
  if (changed.length > 0 && !quiet)
    stderr.write(`${counted(changed.length, 'file')} not formatted. Run: kubectl rollout-group fmt --write FILES\n`);
}

function writeBack({ stdout, cwd }: CommandContext, changed: readonly Formatted[]): void {
  for (const { name, formatted } of changed) {
    try {
      writeFileSync(resolve(cwd, name), formatted);
    } catch (error) {
      throw unwritable(name, error);
    }
    stdout.write(`${name}\n`);
  }
}

function print({ stdout }: CommandContext, results: readonly Formatted[]): void {
  const text = results.map(({ formatted }) => formatted).join('---\n');
  if (stdout.isTerminal) stdout.write(text);
  else stdout.raw.write(text);
}
