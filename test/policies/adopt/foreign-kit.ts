// Objects of other operators for tests, as texts, and what conversion makes of them.

import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { type Conversion, convertObjects } from '../../../policies/adopt/convert.ts';
import { loadPolicies, type PolicyFile } from '../../../policies/load.ts';

/** Conversion of files, as init reads them; of Secrets the keys that are given. */
export function converted(files: readonly PolicyFile[], keys: Readonly<Record<string, readonly string[]>> = {}): Conversion {
  const { manifests } = loadPolicies(files);
  const { groups } = adoptGroups(manifests.map(({ value }) => value));
  return convertObjects({ objects: manifests, groups, secretKeys: (namespace, name) => keys[`${namespace}/${name}`] });
}

/** `code place message` of each finding, without the file. */
export function said({ findings }: Pick<Conversion, 'findings'>): readonly string[] {
  return findings.map(({ code, line, column, message }) => `${code} ${line}:${column} ${message}`);
}

interface PhasedText {
  readonly name?: string;
  readonly spec?: string;
  readonly check?: string;
  readonly query?: string;
  readonly expr?: string;
  readonly url?: string;
  readonly rest?: string;
}

/** A PhasedRollout of the StatefulSet `db` that nothing is wrong with, but for what is given. */
export function phased({
  name = 'db',
  spec = '',
  check = '',
  query = '',
  expr = 'up < 1',
  url = 'https://prom:9090',
  rest = '',
}: PhasedText = {}): string {
  return `apiVersion: sts.plus/v1alpha1
kind: PhasedRollout
metadata: { name: ${name}, namespace: shop }
spec:
  targetRef: db${spec}
  check:
    query:
      expr: ${expr}
      url: ${url}${query}${check}
${rest}`;
}

export function statefulSetText({ replicas = 3, strategy = 'RollingUpdate', metadata = '' } = {}): string {
  return `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db, namespace: shop${metadata} }
spec:
  replicas: ${replicas}
  updateStrategy: { type: ${strategy} }
  template: { metadata: { labels: { app: db } } }
`;
}

/** The PhasedRollout first, so that its lines are those of the file; the StatefulSet in another file. */
export function convertedPhased(
  text: PhasedText = {},
  set = statefulSetText(),
  keys: Readonly<Record<string, readonly string[]>> = {},
): Conversion {
  return converted(
    [
      { name: 'a.yaml', text: phased(text) },
      { name: 'b.yaml', text: set },
    ],
    keys,
  );
}

/** A StatefulsetRollout that nothing is wrong with, with these lines at the top of its spec. */
export function rollout(spec = '', { status = '', set = 'updateStrategy: { type: OnDelete }', replicas = 4 } = {}): string {
  return `apiVersion: bedrock.operator.slack.com/v1
kind: StatefulsetRollout
metadata: { name: queue, namespace: shop }
spec:${spec}
  statefulset:
    metadata: { name: queue }
    spec: { replicas: ${replicas}, ${set}, template: { metadata: { labels: { app: queue } } } }
${status}`;
}

export function convertedRollout(...given: Parameters<typeof rollout>): Conversion {
  return converted([{ name: 'a.yaml', text: rollout(...given) }]);
}
