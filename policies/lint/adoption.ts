// Lint findings of adoption, placed at the label, annotation or field in the manifest.
import type { AdoptionFinding } from '../adopt/adopt.ts';
import { explainCode, type FindingCode } from '../findings/codes.ts';
import { type Finding, finding, objectPlace, type Place } from '../findings/finding.ts';
import type { Manifest } from '../load.ts';

/** Returns the findings of adoption with places from the manifests. A finding of an object without a manifest names the object. */
export function adoptionFindings(findings: readonly AdoptionFinding[], manifests: readonly Manifest[]): readonly Finding[] {
  return findings.flatMap((one) => {
    const manifest = manifests.find((candidate) => `${candidate.kind} ${candidate.namespace}/${candidate.name}` === one.object);
    return isCode(one.code)
      ? [finding(one.code, manifest ? fieldPlace(manifest, one) : objectPlace(one.object, [one.field]), one.message)]
      : [];
  });
}

function fieldPlace(manifest: Manifest, { object, field }: AdoptionFinding): Place {
  const places = [
    manifest.find(['metadata', 'annotations', field]),
    manifest.find(['metadata', 'labels', field]),
    manifest.find(field.split('.')),
  ];
  return { ...(places.find((place) => place !== undefined) ?? manifest.place(['metadata', 'name'])), object };
}

function isCode(code: string): code is FindingCode {
  return explainCode(code) !== undefined;
}
