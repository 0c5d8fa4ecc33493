// Failing notification channels of a group, from the notes that the agent stores next to the ledger.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import { decodeNotes, notesKey, notesLabelValue, notesName } from '../../engine/notify/notes-document.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import type { ChannelFact } from '../doctor/check.ts';
import type { ReadGroups } from './read.ts';

/** Reads the failing channels of a ConfigMap; none when it has no notes. */
export function failingChannels(object: KubernetesObject): readonly ChannelFact[] {
  const { namespace = '', name, labels } = object.metadata;
  const text = fieldAt(object, ['data', notesKey]);
  const prefix = notesName('');
  if (labels?.[ledgerLabel.key] !== notesLabelValue || typeof text !== 'string' || !name.startsWith(prefix)) return [];
  const group = name.slice(prefix.length);
  const notes = decodeNotes(text, { namespace, group });
  if (isUnknown(notes)) return [];
  return Object.entries(notes.problems ?? {}).map(([channel, { text: problem }]) => ({ namespace, group, channel, problem }));
}

/** Returns a sentence for each failing channel of these groups, from their listing. */
export function listedChannelLines({ groups, listing }: Pick<ReadGroups, 'groups' | 'listing'>): readonly string[] {
  const shown = new Set(groups.map(({ decision }) => `${decision.namespace}/${decision.group}`));
  return itemsOf(listing.documents)
    .flatMap(failingChannels)
    .filter(({ namespace, group }) => shown.has(`${namespace}/${group}`))
    .map(({ group, channel, problem }) => `the channel ${channel} of ${group} fails: ${problem}`);
}

/** Returns a sentence for each failing channel of a group; none when the notes may not be read. */
export async function channelLines(
  { env, timeoutMs }: Cluster,
  { namespace, group }: { readonly namespace: string; readonly group: string },
): Promise<readonly string[]> {
  try {
    const target = { namespace, name: notesName(group) };
    const object = await getObject(env, resources.configMaps, target, { site: 'explain.channels', timeoutMs });
    const failing = object === undefined ? [] : failingChannels(object);
    return failing.map(({ channel, problem }) => `the channel ${channel} fails: ${problem}`);
  } catch (error) {
    if (isStatus(error, 403, 404)) return [];
    throw error;
  }
}
