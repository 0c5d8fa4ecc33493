// Reads policy files into typed documents and collects all their findings.

import { type Finding, finding, sortFindings } from './findings/finding.ts';
import { apiGroup, apiVersion, type Kind, schemas, withoutServerMetadata } from './schema/kinds.ts';
import { checkValue } from './schema/schema-findings.ts';
import { textAt, valueAt } from './schema/schema-walk.ts';
import { compareText } from './values/compare-text.ts';
import { extended } from './values/defined.ts';
import { isRecord } from './values/is-record.ts';
import { listed, suggestion } from './wording.ts';
import { type KnownTexts, type Places, parseDocuments, type YamlDocument } from './yaml/document.ts';

export interface PolicyFile {
  readonly name: string;
  readonly text: string;
}

export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface UnusableDocument extends ObjectName {
  /** The document without defaults. */
  readonly value: unknown;
}

/** A document of one of our kinds that has no error, with every default filled in. */
export interface Loaded<K extends Kind> extends ObjectName, Places {
  readonly kind: K;
  readonly file: string;
  readonly value: ReturnType<(typeof schemas)[K]['parse']>;
}

export type LoadedDocument = { readonly [K in Kind]: Loaded<K> }[Kind];

/** A Kubernetes object of another API group, as written or as `storedForm` returns it. */
export interface Manifest extends ObjectName, Places {
  readonly apiVersion: string;
  readonly file: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface LoadResult {
  readonly documents: readonly LoadedDocument[];
  readonly manifests: readonly Manifest[];
  /** The documents of our kinds with errors in their fields. They are not used, but references to them are valid. */
  readonly unusable: readonly UnusableDocument[];
  readonly findings: readonly Finding[];
}

export interface LoadOptions {
  /** The namespace of objects without one; default `default`. */
  readonly namespace?: string;
  /** The namespace that objects without one get, also in their values. Replaces `namespace`. */
  readonly objectNamespace?: string;
  /** Returns the object as the API server stores it; undefined to use the written form. Findings always have places in the file. */
  readonly storedForm?: (name: ObjectName) => Readonly<Record<string, unknown>> | undefined;
  /** Reports whether the document counts as absent. */
  readonly isOmitted?: (name: ObjectName, file: string) => boolean;
  /** The texts that were read before. Absent: each file is parsed. */
  readonly knownTexts?: KnownTexts | undefined;
}

/** Reads policy files and the Kubernetes objects in them. Never throws. Sorts documents and manifests by file name, then by line. */
export function loadPolicies(files: readonly PolicyFile[], options: LoadOptions = {}): LoadResult {
  const sorted = [...files].sort((a, b) => compareText(a.name, b.name));
  const parsed = sorted.map((file) => parseDocuments(file.name, file.text, options.knownTexts));
  const results = parsed
    .flatMap((file) => file.documents)
    .flatMap(withoutLists)
    .map((document) => readDocument(document, options));
  return {
    documents: results.flatMap((result) => result.document ?? []),
    manifests: results.flatMap((result) => result.manifest ?? []),
    unusable: results.flatMap((result) => result.unusable ?? []),
    findings: sortFindings([...parsed.flatMap((file) => file.findings), ...results.flatMap((result) => result.findings)]),
  };
}

interface ReadResult {
  readonly findings: readonly Finding[];
  readonly document?: LoadedDocument;
  readonly manifest?: Manifest;
  readonly unusable?: UnusableDocument;
}

/** Returns the document itself. For a `List`, as `kubectl get -o yaml` prints it, returns its items, each with its own places. */
function withoutLists(document: YamlDocument): readonly YamlDocument[] {
  const items = listItems(document.value);
  if (document.errors.length > 0 || items === undefined) return [document];
  // Report disallowed YAML only once: at the first item that is a `List` or has one of our kinds.
  const first = items.findIndex((item) => isOurs(item) || listItems(item) !== undefined);
  return items.flatMap((value, index) =>
    withoutLists({
      ...document,
      value,
      dialect: index === first ? document.dialect : [],
      find: (path, part) => document.find(['items', index, ...path], part),
      place: (path, part) => document.place(['items', index, ...path], part),
    }),
  );
}

function listItems(value: unknown): readonly unknown[] | undefined {
  const items = valueAt(value, ['kind']) === 'List' ? valueAt(value, ['items']) : undefined;
  return Array.isArray(items) ? items : undefined;
}

/** Reads one document, or one object of a cluster. Objects of other API groups are manifests. */
export function readDocument(document: YamlDocument, options: LoadOptions): ReadResult {
  if (document.errors.length > 0) return { findings: document.errors };
  return options.objectNamespace === undefined
    ? readObject(document, options)
    : readObject({ ...document, value: inNamespace(document.value, options.objectNamespace) }, options);
}

/** Returns the object with the namespace, unless it names one. */
function inNamespace(value: unknown, namespace: string): unknown {
  const metadata = valueAt(value, ['metadata']);
  if (!isRecord(value) || !isRecord(metadata) || metadata['namespace'] !== undefined) return value;
  return { ...value, metadata: { ...metadata, namespace } };
}

function readObject(document: YamlDocument, { namespace = 'default', storedForm = () => undefined, isOmitted }: LoadOptions): ReadResult {
  const { value } = document;
  const version = valueAt(value, ['apiVersion']);
  const kind = valueAt(value, ['kind']);
  if (!isRecord(value) || typeof version !== 'string' || typeof kind !== 'string') {
    return { findings: [...document.dialect, finding('RG1012', document.place([]), notAnObject(value))] };
  }
  const name = nameOf(value, kind, namespace);
  if (isOmitted?.(name, document.file) === true) return { findings: [] };
  if (!isOurs(value)) {
    const { file, find, place } = document;
    return { findings: [], manifest: extended(name, { apiVersion: version, file, value: storedForm(name) ?? value, find, place }) };
  }
  if (version !== apiVersion) {
    const message = `the kind ${kind} has the apiVersion ${version}; the supported version is ${apiVersion}`;
    return { findings: [...document.dialect, finding('RG2002', document.place(['apiVersion']), message)] };
  }
  if (!isKind(kind)) {
    const known = Object.keys(schemas);
    const usage = kind === 'SavedPlan' ? 'apply a saved plan without -f: kubectl rollout-group apply FILE' : suggestion(kind, known);
    const hint = usage ?? `kinds are ${listed(known, 'and')}`;
    return { findings: [...document.dialect, finding('RG2001', document.place(['kind']), `the kind ${kind} does not exist`, { hint })] };
  }
  const result = readOurs(document, { ...name, kind });
  const stored = result.document === undefined ? undefined : storedForm(name);
  return stored === undefined ? result : readOurs({ ...document, value: stored }, { ...name, kind });
}

function nameOf(value: unknown, kind: string, defaultNamespace: string): ObjectName {
  return {
    kind,
    namespace: textAt(value, ['metadata', 'namespace']) ?? defaultNamespace,
    name: textAt(value, ['metadata', 'name']) ?? '',
  };
}

function readOurs(document: YamlDocument, name: ObjectName & { readonly kind: Kind }): ReadResult {
  const value = withoutServerMetadata(document.value);
  const schema = schemas[name.kind];
  const { findings: ofSchema, parsed } = checkValue(schema, value, document);
  const findings = [...document.dialect, ...ofSchema];
  if (findings.length > 0 || parsed === undefined) return { findings, unusable: { ...name, value: document.value } };
  // The schema of the kind produced the value, but TypeScript cannot relate a lookup by a union of kinds to one kind.
  const loaded = { ...name, file: document.file, value: parsed, find: document.find, place: document.place } as LoadedDocument;
  return { findings, document: loaded };
}

/** Returns whether a value has our API group or one of our kinds. A wrong apiVersion must not hide a policy, so the kind suffices. */
function isOurs(value: unknown): boolean {
  const version = valueAt(value, ['apiVersion']);
  const kind = valueAt(value, ['kind']);
  return (
    (typeof version === 'string' && (version === apiGroup || version.startsWith(`${apiGroup}/`))) ||
    (typeof kind === 'string' && isKind(kind))
  );
}

function isKind(kind: string): kind is Kind {
  return Object.hasOwn(schemas, kind);
}

function notAnObject(value: unknown): string {
  if (!isRecord(value)) return 'the document is not a mapping with apiVersion and kind';
  const missing = ['apiVersion', 'kind'].filter((key) => typeof value[key] !== 'string');
  return `the document has no ${missing.join(' and no ')}`;
}
