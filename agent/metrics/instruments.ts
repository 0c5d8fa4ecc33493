// Creates the instruments of a catalog and bounds the values of their labels.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { MetricSpec } from './catalog.ts';

type InstrumentOf<Spec extends MetricSpec> = Spec['type'] extends 'counter' ? Counter : Spec['type'] extends 'gauge' ? Gauge : Histogram;

export type InstrumentsOf<Specs extends Readonly<Record<string, MetricSpec>>> = { readonly [Key in keyof Specs]: InstrumentOf<Specs[Key]> };

export function instrumentsOf<Specs extends Readonly<Record<string, MetricSpec>>>(registry: Registry, specs: Specs): InstrumentsOf<Specs> {
  const made = Object.entries(specs).map(([key, { name, type, labels, help, buckets }]) => {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (type === 'counter') return [key, new Counter(options)] as const;
    if (type === 'gauge') return [key, new Gauge(options)] as const;
    return [key, new Histogram({ ...options, ...(buckets === undefined ? {} : { buckets: [...buckets] }) })] as const;
  });
  // Each key has the instrument type of its metric. The compiler cannot derive this from the list.
  return Object.fromEntries(made) as InstrumentsOf<Specs>;
}

/** Bounds a label with values from outside: keeps the first `limit` values of at most 256 characters. All other values become `other`. */
export class BoundedLabel {
  readonly #seen = new Set<string>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  of(value: string): string {
    if (this.#seen.has(value)) return value;
    if (this.#seen.size >= this.#limit || value.length > 256) return 'other';
    this.#seen.add(value);
    return value;
  }
}

const apiPath =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>[^/]+)\/(?:(?:watch\/)?namespaces\/[^/]+\/(?=[^/]+)(?!status$|finalize$))?(?<resource>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<sub>.+))?)?$/;

/** Returns a label such as `core/v1/pods collection` or `apps/v1/statefulsets object`. Other paths stay unchanged. */
export function kubernetesPathLabel(pathAndQuery: string): string {
  const path = pathAndQuery.replace(/[?#][\s\S]*$/, '');
  const { group = 'core', version, resource, name, sub } = apiPath.exec(path)?.groups ?? {};
  if (version === undefined || resource === undefined) return path;
  const kind = name === undefined ? 'collection' : sub === undefined ? 'object' : `object ${sub} subresource`;
  return `${group}/${version}/${resource} ${kind}`;
}
