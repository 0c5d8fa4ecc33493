// Models an agent of another version that leads for a moment during an upgrade or a downgrade, and writes the ledger of a group.
import { configMapResource, leaseResource, numberAt, parsed, textAt } from '../objects.ts';
import type { EventFields } from '../scenario.ts';
import type { Actor, Json } from '../server/request.ts';
import type { World } from './world.ts';

type Version = EventFields<'otherVersion'>['version'];

interface OtherVersionOptions extends Pick<World, 'server' | 'wallMs'> {
  readonly namespace: string;
  readonly group: string;
}

/** The agent of the other version, which differs from every simulated process. */
export const otherAgent: Actor = { user: 'agent-of-another-version' };

/** The major format that only the next major version reads. */
const nextMajor = 3;

/** The fields that the first version did not know. It dropped them with each write. */
const laterFields = ['created', 'members', 'endedCancels', 'release'];

/**
 * Takes the Lease, and writes the ledger as the version does. Returns a function that restores a format that no simulated agent reads;
 * undefined without a ledger.
 */
export function leadInVersion(options: OtherVersionOptions, version: Version): (() => void) | undefined {
  const ledger = ledgerOf(options);
  if (ledger === undefined || isOfNextVersion(ledger)) return undefined;
  takeLease(options);
  writeLedger(options, writtenBy(version, ledger));
  return () => {
    const current = ledgerOf(options);
    if (current !== undefined && isOfNextVersion(current)) writeLedger(options, { ...current, format: formatOf(ledger) });
  };
}

/** Returns whether only an agent of the next major version reads the ledger. */
export function isOfNextVersion(ledger: unknown): boolean {
  return formatOf(ledger).startsWith(`${nextMajor}.`);
}

function writtenBy(version: Version, ledger: Json): Json {
  const [major = '1'] = formatOf(ledger).split('.');
  switch (version) {
    case 'older':
      return { ...Object.fromEntries(Object.entries(ledger).filter(([key]) => !laterFields.includes(key))), format: `${major}.0` };
    case 'newer':
      return { ...withFuture(ledger), format: `${major}.99` };
    case 'next':
      return { ...ledger, format: `${nextMajor}.0` };
  }
}

/** Adds a field of a later version to the ledger, to its run and to each row of its lists. */
function withFuture(value: unknown): Json {
  const added = Object.entries(value as Json).map(([key, inner]): [string, unknown] => {
    if (Array.isArray(inner)) return [key, inner.map((row: unknown) => (isMap(row) ? { ...row, future: 1 } : row))];
    return [key, key === 'run' && isMap(inner) ? { ...inner, future: { a: 1 } } : inner];
  });
  return { ...Object.fromEntries(added), future: [1] };
}

function isMap(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function formatOf(ledger: unknown): string {
  return textAt(ledger, 'format') ?? '';
}

function referenceOf({ namespace, group }: OtherVersionOptions) {
  return { resource: configMapResource, namespace, name: `rollout-group-${group}` };
}

function ledgerOf(options: OtherVersionOptions): Json | undefined {
  const { resource, namespace, name } = referenceOf(options);
  return parsed(textAt(options.server.get(resource, namespace, name), 'data', 'ledger')) as Json | undefined;
}

function writeLedger(options: OtherVersionOptions, ledger: Json): void {
  options.server.change(otherAgent, referenceOf(options), { data: { ledger: JSON.stringify(ledger) } });
}

/** Becomes the holder of the Lease, and never renews it. */
function takeLease({ server, wallMs }: OtherVersionOptions): void {
  for (const lease of server.list(leaseResource)) {
    const { name, namespace = '' } = lease.metadata;
    const leaseTransitions = (numberAt(lease, 'spec', 'leaseTransitions') ?? 0) + 1;
    const renewTime = new Date(wallMs()).toISOString().replace('Z', '000Z');
    const spec = { holderIdentity: 'other-version', leaseTransitions, renewTime };
    server.change(otherAgent, { resource: leaseResource, namespace, name }, { spec });
  }
}
