// Service discovery of a StatefulsetRollout as gates that ask Consul.
import type { Finding } from '../../findings/finding.ts';
import { type ForeignObject, foreignFinding, type Request } from '../foreign.ts';
import { shortHash, slug } from '../names.ts';

/** A gate without the name of its source. */
interface DiscoveryGate {
  readonly name: string;
  /** Name of the requested source. */
  readonly key: string;
  readonly consul: Readonly<Record<string, unknown>>;
  readonly every: string;
  readonly failureLimit: 0;
  readonly noData: 'pass';
}

/** Placeholder for a missing address. Names in `.invalid` never resolve (RFC 2606). */
const placeholder = 'https://consul.invalid:8501';
const everyMs = 15_000;

/**
 * A gate for each service, which waits until as many instances pass as there are pods. A service that does not exist holds nothing, as there.
 */
export function discoveryOf(
  object: ForeignObject,
  input: { readonly datacenter: string | undefined; readonly services: readonly string[]; readonly replicas: number },
): { readonly gates: readonly DiscoveryGate[]; readonly wishes: readonly Request[]; readonly findings: readonly Finding[] } {
  const services = [...new Set(input.services)];
  const { datacenter, replicas } = input;
  if (services.length === 0) return { gates: [], wishes: [], findings: [] };
  const path = ['spec', 'serviceDiscovery', 'serviceNames'];
  const key = 'consul';
  const names = services.map((service) => slug(service, 54) || 'service');
  const gates = services.map((service, index): DiscoveryGate => {
    const name = names[index] ?? service;
    const isUnique = names.filter((other) => other === name).length === 1;
    return {
      name: isUnique ? name : `${name}-${shortHash(service)}`,
      key,
      consul: { service, ...(datacenter ? { datacenter } : {}), passing: replicas },
      every: '15s',
      failureLimit: 0,
      noData: 'pass',
    };
  });
  const wish: Request = {
    kind: 'MetricSource',
    key,
    base: 'consul',
    spec: { consul: { url: placeholder } },
    namespace: object.namespace,
    everyMs,
  };
  const findings = [
    foreignFinding(object, 'RG7005', path, {
      message: `the object has no Consul address; the MetricSource has the placeholder ${placeholder}`,
      hint: 'write the address of your Consul, and its token if it needs one',
    }),
    foreignFinding(object, 'RG7003', path, {
      message: `Consul is asked at the end of each wave, and not after each pod: ${replicas} instances of each service must pass, and a service without instances holds nothing`,
      hint: 'remove noData: pass to have it hold; write passing again after you have scaled',
    }),
  ];
  return { gates, wishes: [wish], findings };
}
