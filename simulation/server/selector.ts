// Implements the label and field selectors of lists and watches.
import { matchesSelector as matches } from '../../policies/label-selector.ts';
import type { LabelSelector } from '../../policies/schema/scalars.ts';
import { textAt } from '../objects.ts';
import { isObject } from './json.ts';
import type { ServedKind } from './kinds.ts';
import { badRequest, type Refusal } from './refusal.ts';
import type { ModelObject } from './request.ts';

export type Selects = (object: ModelObject) => boolean;

export interface Selection {
  /** Returns whether an object is selected; undefined if all objects are selected. */
  readonly selects: Selects | undefined;
  readonly isFiltered: boolean;
  /** The name in a field selector on `metadata.name`. */
  readonly name?: string;
}

/** Returns the selection of a query. Throws Refusal for unsupported selectors. */
export function selectionOf(kind: ServedKind, query: URLSearchParams): Selection {
  const labels = labelRequirements(query.get('labelSelector') ?? '');
  const fields = fieldRequirements(kind, query.get('fieldSelector') ?? '');
  if (labels.length === 0 && fields.length === 0) return { selects: undefined, isFiltered: false };
  const selects = (object: ModelObject): boolean =>
    labels.every((accepts) => accepts(object.metadata.labels ?? {})) && fields.every((accepts) => accepts(object));
  const name = /(?:^|,)metadata\.name==?([^,]+)/.exec(query.get('fieldSelector') ?? '')?.[1];
  return { selects, isFiltered: true, ...(name !== undefined && { name }) };
}

type LabelsMatch = (labels: Readonly<Record<string, string>>) => boolean;

const setBased = /^([^\s,()=!]+)\s+(in|notin)\s+\(([^)]*)\)$/;
const equality = /^([^\s,()=!]+)\s*(==|=|!=)\s*([A-Za-z0-9._-]*)$/;
const existence = /^(!?)\s*([^\s,()=!]+)$/;

/** Parses the requirements of a label selector. Throws Refusal. */
export function labelRequirements(text: string): readonly LabelsMatch[] {
  return splitOutside(text).map((part) => labelRequirement(part));
}

function labelRequirement(part: string): LabelsMatch {
  const [, setKey = '', operator, list = ''] = setBased.exec(part) ?? [];
  if (operator !== undefined) {
    const values = new Set(list.split(',').map((value) => value.trim()));
    if (operator === 'in') return (labels) => labels[setKey] !== undefined && values.has(labels[setKey]);
    return (labels) => labels[setKey] === undefined || !values.has(labels[setKey]);
  }
  const [, key = '', sign, value = ''] = equality.exec(part) ?? [];
  if (sign !== undefined) return sign === '!=' ? (labels) => labels[key] !== value : (labels) => labels[key] === value;
  const [, not, name] = existence.exec(part) ?? [];
  if (name === undefined)
    throw badRequest(`unable to parse requirement: found '${/[=!()]/.exec(part.slice(1))?.[0] ?? part}', expected: identifier`);
  return not === '!' ? (labels) => labels[name] === undefined : (labels) => labels[name] !== undefined;
}

function splitOutside(text: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let begin = 0;
  for (let at = 0; at <= text.length; at += 1) {
    const char = text[at];
    if (char === '(') depth += 1;
    else if (char === ')') depth -= 1;
    else if (char === undefined || (char === ',' && depth === 0)) {
      const part = text.slice(begin, at).trim();
      if (part !== '') parts.push(part);
      begin = at + 1;
    }
  }
  return parts;
}

const fieldPattern = /^([^=!]+)(==|=|!=)(.*)$/;
/** The fields of pods, besides name and namespace, that the field selectors of the model support. */
const podFields = ['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName', 'status.phase'];

function fieldRequirements(kind: ServedKind, text: string): readonly Selects[] {
  const isPod = kind.group === '' && kind.plural === 'pods';
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const [, field = '', sign, wanted = ''] = fieldPattern.exec(part) ?? [];
      if (sign === undefined) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
      const isKnown = field === 'metadata.name' || field === 'metadata.namespace' || (isPod && podFields.includes(field));
      if (!isKnown) throw unknownField(kind, field);
      const keys = field.split('.');
      return (object) => ((textAt(object, ...keys) ?? '') === wanted) !== (sign === '!=');
    });
}

function unknownField(kind: ServedKind, field: string): Refusal {
  if (kind.isCustom || kind.plural === 'pods') return badRequest(`field label not supported: ${field}`);
  return badRequest(`"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`);
}

/** Returns whether a `metav1.LabelSelector` selects the labels. An absent selector selects nothing, an empty selector everything. */
export function matchesSelector(selector: unknown, labels: Readonly<Record<string, string>> = {}): boolean {
  return isObject(selector) && matches(selector as LabelSelector, labels);
}
