// Stores the notes of each group in a ConfigMap apart from the ledger, so that notifications never delay actions.
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import type { Notes } from '../../engine/notify/notes.ts';
import { decodeNotes, encodeNotes, notesByteLimit, notesKey, notesLabelValue, notesName } from '../../engine/notify/notes-document.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { AgentEnv } from '../env.ts';

/** The stored notes have an unknown format, or would exceed the size limit. */
class NotesUnusable extends Error {
  override readonly name = 'NotesUnusable';
}

export interface NotesStore {
  /** From the quorum. Rejects with NotesUnusable, ApiFailure or TransportFailure. */
  readonly read: (namespace: string, group: string) => Promise<Notes>;
  /** Stores the result of `change` by compare-and-swap; may call it several times. Rejects as `read`, and with WriteRefused. */
  readonly update: (namespace: string, group: string, change: (notes: Notes) => Notes) => Promise<Notes>;
  readonly forget: (namespace: string, group: string) => void;
}

export function notesStore(
  env: AgentEnv,
  { timeoutMs, mayWrite }: { readonly timeoutMs: number; readonly mayWrite: () => boolean },
): NotesStore {
  const shared = new Map<string, SharedObject<Notes>>();
  const objectOf = (namespace: string, group: string): SharedObject<Notes> => {
    const key = `${namespace}/${group}`;
    const known = shared.get(key);
    if (known !== undefined) return known;
    const created = new SharedObject<Notes>({
      env,
      resource: resources.configMaps,
      namespace,
      name: notesName(group),
      site: 'notify.notes',
      decode: (object) => decode(object, { namespace, group }),
      encode,
      // With labels, annotations and the escapes of JSON in JSON.
      maxBytes: 3 * notesByteLimit,
      mayWrite,
      // The queues make the pauses.
      retries: 0,
      timeoutMs,
    });
    shared.set(key, created);
    return created;
  };
  return {
    read: async (namespace, group) => (await objectOf(namespace, group).read()).value,
    update: async (namespace, group, change) => (await objectOf(namespace, group).update(change)).value,
    forget: (namespace, group) => void shared.delete(`${namespace}/${group}`),
  };
}

function decode(object: KubernetesObject | undefined, identity: { readonly namespace: string; readonly group: string }): Notes {
  if (object !== undefined && object.metadata.labels?.[ledgerLabel.key] !== notesLabelValue) {
    throw new NotesUnusable(`ConfigMap ${identity.namespace}/${notesName(identity.group)} is not managed by the agent`);
  }
  const data = object?.['data'];
  const text: unknown = typeof data === 'object' && data !== null ? Reflect.get(data, notesKey) : undefined;
  const notes = decodeNotes(typeof text === 'string' ? text : undefined, identity);
  if (isUnknown(notes)) throw new NotesUnusable(notes.unknown);
  return notes;
}

function encode(notes: Notes, existing: KubernetesObject | undefined) {
  const text = encodeNotes(notes);
  if (isUnknown(text)) throw new NotesUnusable(text.unknown);
  const labels = { ...existing?.metadata.labels, [ledgerLabel.key]: notesLabelValue };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { labels }, data: { [notesKey]: text } };
}
