// Objects of other rollout operators, the result of their conversion, and findings about them.
import { z } from 'zod';
import type { FindingCode } from '../findings/codes.ts';
import { type Finding, type FindingOptions, finding, type Place } from '../findings/finding.ts';
import type { ObjectName } from '../load.ts';
import { schemaFindings } from '../schema/schema-findings.ts';
import { isRecord } from '../schema/schema-walk.ts';
import type { Path, Places } from '../yaml/document.ts';

/** An object of a file or of a cluster. */
export interface ForeignObject extends ObjectName {
  readonly value: Readonly<Record<string, unknown>>;
  readonly place: Places['place'];
}

/** The context of a conversion. */
export interface Surroundings {
  /** The StatefulSet of this name; undefined when it is not among what was read. */
  readonly statefulSet: (namespace: string, name: string) => ForeignObject | undefined;
  /** The keys of a Secret, never their values; undefined if unreadable. */
  readonly secretKeys: (namespace: string, name: string) => readonly string[] | undefined;
}

/** A document that belongs to the agent's namespace and may serve several groups. The same key means the same document. */
export interface Request {
  readonly kind: 'MetricSource' | 'NotificationChannel';
  readonly key: string;
  /** The name that it would like to have; made unique where two want the same. */
  readonly base: string;
  /** The spec without `usableFrom`. */
  readonly spec: Readonly<Record<string, unknown>>;
  readonly namespace: string;
  /** The shortest pause between two questions, in milliseconds. */
  readonly everyMs?: number;
}

/** The name of the document that a wish became, by its key. */
export type NameOf = (key: string) => string;

/** The result of one conversion. Without a group no document is written, and an error states why. */
export interface Reading {
  readonly object: ForeignObject;
  readonly findings: readonly Finding[];
  readonly wishes: readonly Request[];
  readonly group?: {
    readonly name: string;
    readonly statefulSet: string;
    /** Field with the name of the StatefulSet. */
    readonly statefulSetPath: Path;
    /** The RolloutGroup, for the schema to complete. */
    readonly document: (nameOf: NameOf) => unknown;
  };
  /** A StatefulSet that stands nowhere but in the object. */
  readonly statefulSet?: Readonly<Record<string, unknown>>;
}

/** `kind namespace/name`. */
export function foreignText({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns a finding at a field of the object, or at the nearest existing field around it. `part: 'key'` marks the key instead of the value. */
export function foreignFinding(
  object: ForeignObject,
  code: FindingCode,
  path: Path,
  { message, part, ...options }: FindingOptions & { readonly message: string; readonly part?: 'key' },
): Finding {
  return finding(code, { ...withoutPasswords(object.place(path, part)), object: foreignText(object) }, message, options);
}

/** Returns findings for an unreadable spec: the value, the expected value, and the fix. Without findings the spec matches the schema. */
export function specFindings(object: ForeignObject, spec: z.ZodType): readonly Finding[] {
  const places = { find: object.place, place: object.place };
  return schemaFindings(z.looseObject({ spec }), object.value, places).map(
    ({ message, hint, code: _code, severity: _severity, ...place }) => {
      const todo = hint === undefined ? 'mend the field and run init again, or write the group by hand' : `${hint}, and run init again`;
      const where = { ...withoutPasswords(place), object: foreignText(object) };
      return finding('RG7001', where, `${message}, so the object is left out`, { hint: todo });
    },
  );
}

/** Addresses with credentials are not printed. */
function withoutPasswords({ excerpt, ...place }: Place): Place {
  const isOpen = excerpt?.some(({ text }) => /\/\/[^\s/]*@/.test(text)) ?? false;
  return excerpt === undefined || isOpen ? place : { ...place, excerpt };
}

/** The known fields as a tree; true means any value. */
interface KnownFields {
  readonly [field: string]: true | KnownFields;
}

/** A finding for each field of `spec` that is not in the tree. */
export function unknownFields(object: ForeignObject, known: KnownFields): readonly Finding[] {
  return pathsBeyond(object.value['spec'], known, ['spec']).map((path) =>
    foreignFinding(object, 'RG7002', path, { message: `${path.join('.')} is an unknown field and is omitted`, part: 'key' }),
  );
}

function pathsBeyond(value: unknown, known: KnownFields, before: Path): readonly Path[] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    const path = [...before, field];
    const below = Object.hasOwn(known, field) ? known[field] : undefined;
    if (below === undefined) return [path];
    return below === true ? [] : pathsBeyond(inner, below, path);
  });
}

/** Written by tools that keep the object, and about the object alone. */
const ofTools = /^(?:kubectl\.kubernetes\.io\/|argocd\.argoproj\.io\/|meta\.helm\.sh\/|helm\.sh\/)/;

/** Labels and annotations stay with the object; the group does not get them. */
export function metadataFindings(object: ForeignObject): readonly Finding[] {
  const { metadata } = object.value;
  return (['labels', 'annotations'] as const).flatMap((part) => {
    const map = isRecord(metadata) ? metadata[part] : undefined;
    const keys = isRecord(map) ? Object.keys(map).filter((key) => !ofTools.test(key)) : [];
    if (keys.length === 0) return [];
    const message = `the ${part} ${keys.join(', ')} stay with the object; the group does not have them`;
    const hint = 'write what a message should say to the StatefulSet, such as its annotation rollout-group.dev/commit';
    return [foreignFinding(object, 'RG7003', ['metadata', part], { message, part: 'key', hint })];
  });
}
