// Findings of adoption as findings with a place: the annotation, label or field in the file that has the StatefulSet.
import type { AdoptionFinding } from '../policies/adopt.ts';
import { type Finding, finding, objectPlace, type Place, sortFindings } from '../policies/finding.ts';
import { explainCode, type FindingCode, findingCodes } from '../policies/finding-codes.ts';
import type { Manifest } from '../policies/load.ts';

/** The findings, sorted; one about an object that no file has keeps the name of the object as its place. */
export function placedFindings(findings: readonly AdoptionFinding[], manifests: readonly Manifest[]): readonly Finding[] {
  const byObject = new Map(manifests.map((manifest) => [`${manifest.kind} ${manifest.namespace}/${manifest.name}`, manifest]));
  return sortFindings(
    findings.flatMap(({ code, message, object, field }) =>
      isCode(code) ? [finding(code, placeIn(byObject.get(object), object, field), message)] : [],
    ),
  );
}

function isCode(code: string): code is FindingCode {
  return explainCode(code) !== undefined && Object.hasOwn(findingCodes, code);
}

function placeIn(manifest: Manifest | undefined, object: string, field: string): Place {
  if (manifest === undefined) return objectPlace(object);
  const paths = [['metadata', 'annotations', field], ['metadata', 'labels', field], field.split('.')];
  const found = paths.map((path) => manifest.find(path)).find((place) => place !== undefined);
  return { ...(found ?? manifest.place(['metadata', 'name'])), object };
}
