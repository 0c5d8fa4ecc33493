// Defines objects of other rollout operators and the result of their conversion, and creates findings about them.
import * as z from 'zod';
import type { FindingCode } from '../findings/codes.ts';
import { type Finding, finding, type Place } from '../findings/finding.ts';
import type { ObjectName } from '../load.ts';
import { schemaFindings } from '../schema/schema-findings.ts';
import { walkWithSchema } from '../schema/schema-walk.ts';
import { isRecord } from '../values/is-record.ts';
import type { Path, Places } from '../yaml/document.ts';

export interface ForeignObject extends ObjectName {
  readonly value: Readonly<Record<string, unknown>>;
  readonly place: Places['place'];
}

export interface ConversionContext {
  /** Returns the StatefulSet of this name; undefined if the input does not contain it. */
  readonly statefulSet: (namespace: string, name: string) => ForeignObject | undefined;
  /** Returns the keys of a Secret, never their values; undefined if unreadable. */
  readonly secretKeys: (namespace: string, name: string) => readonly string[] | undefined;
}

/** A document in the agent's namespace that a group needs. If several groups need the same document, the keys are equal. */
export interface NeededDocument {
  readonly kind: 'MetricSource' | 'NotificationChannel';
  readonly key: string;
  /** The preferred name; a hash is added if two documents prefer the same name. */
  readonly base: string;
  /** The spec without `usableFrom`. */
  readonly spec: Readonly<Record<string, unknown>>;
  readonly namespace: string;
  /** The interval between two queries, in milliseconds. */
  readonly everyMs?: number;
}

/** Returns the name of a needed document by its key. */
export type NameOf = (key: string) => string;

/** The result of one conversion. Without a group no document is written, and an error states why. */
export interface ConvertedObject {
  readonly object: ForeignObject;
  readonly findings: readonly Finding[];
  readonly needs: readonly NeededDocument[];
  readonly group?: {
    readonly statefulSet: string;
    readonly statefulSetField: string;
    /** Returns the spec of the RolloutGroup, without defaults. The group has the name of the object. */
    readonly spec: (nameOf: NameOf) => unknown;
  };
  readonly statefulSet?: Readonly<Record<string, unknown>>;
}

export function foreignText({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace}/${name}`;
}

/** A function that returns a finding at a field such as `spec.check.query.url`, or at the nearest existing parent. */
type Report = (code: FindingCode, field: string, message: string, hint?: string) => Finding;

export function reporterFor(object: ForeignObject): Report {
  return (code, field, message, hint) => finding(code, placeIn(object, object.place(field.split('.'))), message, { hint });
}

/** Returns the error for an object that is not converted. */
export function refusal(object: ForeignObject, field: string, cause: string, hint?: string): Finding {
  return reporterFor(object)('RG7001', field, `the object is not converted: ${cause}`, hint);
}

/** Returns findings for an unreadable spec: the value, the expected value, and the fix. Without findings the spec matches the schema. */
export function specFindings(object: ForeignObject, spec: z.ZodType): readonly Finding[] {
  const places = { find: object.place, place: object.place };
  return schemaFindings(z.looseObject({ spec }), object.value, places).map(
    ({ message, hint, code: _code, severity: _severity, ...place }) =>
      finding('RG7001', placeIn(object, place), `the object is not converted: ${message}`, {
        hint: hint && `${hint}, and run init again`,
      }),
  );
}

function placeIn(object: ForeignObject, { excerpt, ...place }: Place): Place {
  const hasCredentials = excerpt?.some(({ text }) => /\/\/[^\s/]*@/.test(text)) ?? false;
  return { ...place, ...(excerpt === undefined || hasCredentials ? {} : { excerpt }), object: foreignText(object) };
}

/** Returns a finding for each field of `spec` that is not in the schema. A loose object takes any field. */
export function unknownFields(object: ForeignObject, spec: z.ZodObject): readonly Finding[] {
  const unknown: Path[] = [];
  walkWithSchema(spec, object.value['spec'], (schema, value, path) => {
    if (!(schema instanceof z.ZodObject) || schema.def.catchall !== undefined || !isRecord(value)) return;
    const fields = Object.keys(value).filter((field) => !Object.hasOwn(schema.shape, field));
    unknown.push(...fields.map((field) => ['spec', ...path, field]));
  });
  return unknown.map((path) =>
    finding('RG7002', placeIn(object, object.place(path, 'key')), `${path.join('.')} is an unknown field and is omitted`),
  );
}

/** The prefixes of keys that deployment tools write for themselves. */
const toolKeys = /^(?:kubectl\.kubernetes\.io\/|argocd\.argoproj\.io\/|meta\.helm\.sh\/|helm\.sh\/)/;

/** Returns findings for labels and annotations, because the group does not get them. */
export function metadataFindings(object: ForeignObject): readonly Finding[] {
  const { metadata } = object.value;
  return (['labels', 'annotations'] as const).flatMap((part) => {
    const map = isRecord(metadata) ? metadata[part] : undefined;
    const keys = isRecord(map) ? Object.keys(map).filter((key) => !toolKeys.test(key)) : [];
    if (keys.length === 0) return [];
    const message = `the ${part} ${keys.join(', ')} stay with the object; the group does not have them`;
    const hint = 'write values that messages need into annotations of the StatefulSet, such as rollout-group.dev/commit';
    return [finding('RG7003', placeIn(object, object.place(['metadata', part], 'key')), message, { hint })];
  });
}
