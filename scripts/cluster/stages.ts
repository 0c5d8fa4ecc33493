// The stages of kwok for a cluster that a person watches: slower pods than in tests, and images that do not start.
import { readFileSync } from 'node:fs';
import { parseAllDocuments, stringify } from 'yaml';

interface Stage {
  readonly metadata: { readonly name: string };
  readonly spec: { delay?: { durationMilliseconds: number; jitterDurationMilliseconds: number } };
}

/** Returns stages with pods that need this time until they are Ready. Pods with one of the images never become Ready. */
export function stagesWith(readySeconds: number, brokenImages: readonly string[]): string {
  const names = brokenImages.map((image) => JSON.stringify(image)).join(', ');
  const text = readFileSync('test/control-plane/stages.yaml', 'utf8');
  const stages = parseAllDocuments(names === '' ? text : text.replaceAll('contains("broken")', `(contains("broken") or IN(${names}))`)).map(
    (document) => document.toJS() as Stage,
  );
  const ready = stages.find(({ metadata }) => metadata.name === 'pod-ready')?.spec.delay;
  if (ready === undefined) throw new Error('the stages have no delay of the stage pod-ready');
  ready.durationMilliseconds = readySeconds * 1000;
  ready.jitterDurationMilliseconds = readySeconds * 1200;
  return stages.map((stage) => stringify(stage)).join('---\n');
}
