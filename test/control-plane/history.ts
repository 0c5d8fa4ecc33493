// Records every state of pods, StatefulSets and nodes from the first revision on, and returns them with the audit log.
import type { History, ObjectEvent } from '../kit/watcher-history.ts';
import type { KubernetesObject } from './client.ts';
import type { ControlPlane } from './control-plane.ts';

export interface HistoryRecorder {
  /** Returns the history so far, after the watches have reached the current state of the server. */
  readonly read: () => Promise<History>;
  readonly stop: () => void;
}

const kinds = [
  { kind: 'Pod', collection: '/api/v1/pods' },
  { kind: 'StatefulSet', collection: '/apis/apps/v1/statefulsets' },
  { kind: 'Node', collection: '/api/v1/nodes' },
] as const satisfies readonly { readonly kind: ObjectEvent['kind']; readonly collection: string }[];

const timeoutMs = 30_000;

interface List {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly KubernetesObject[];
}

/** Starts with the existing objects. Call it before the first StatefulSet is created, and `stop` at the end. */
export async function recordHistory({ client, auditLog }: ControlPlane): Promise<HistoryRecorder> {
  const events: ObjectEvent[] = [];
  const ending = new AbortController();
  let failure: unknown;
  const add = (type: string, kind: ObjectEvent['kind'], object: KubernetesObject) => {
    // Each kind is recorded as the server sent it, so its fields have the types of that kind.
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') events.push({ type, kind, object } as unknown as ObjectEvent);
  };
  for (const { kind, collection } of kinds) {
    const list = await client.get<List>(collection);
    for (const item of list.items) add('ADDED', kind, item);
    follow(kind, collection, list.metadata.resourceVersion).catch((error) => {
      if (!ending.signal.aborted) failure = error;
    });
  }

  async function follow(kind: ObjectEvent['kind'], collection: string, first: string): Promise<void> {
    let revision = first;
    while (!ending.signal.aborted) {
      for await (const { type, object } of client.watch<KubernetesObject>(collection, revision, ending.signal)) {
        if (type === 'ERROR') throw new Error(`the watch of ${collection} broke: ${JSON.stringify(object)}`);
        revision = object.metadata.resourceVersion;
        add(type, kind, object);
      }
    }
  }

  /** Compares the watches with lists until both agree: an event arrives some milliseconds after the change. */
  async function catchUp(): Promise<void> {
    for (const { kind, collection } of kinds) {
      const list = await client.get<List>(collection);
      const upTo = Number(list.metadata.resourceVersion);
      const wanted = list.items.map(({ metadata }) => metadata.resourceVersion);
      for (const endsAt = Date.now() + timeoutMs; ; await new Promise((settle) => setTimeout(settle, 20))) {
        if (failure !== undefined) throw failure;
        const mine = events.filter((event) => event.kind === kind);
        const seen = new Set(mine.map(({ object }) => object.metadata.resourceVersion));
        const last = new Map(mine.map((event) => [event.object.metadata.uid, event]));
        const kept = [...last.values()].filter(({ type, object }) => type !== 'DELETED' && Number(object.metadata.resourceVersion) <= upTo);
        if (wanted.every((revision) => seen.has(revision)) && kept.length <= wanted.length) break;
        if (Date.now() > endsAt) throw new Error(`the watch of ${collection} is behind for more than ${timeoutMs / 1000} s`);
      }
    }
  }

  return {
    read: async () => {
      await catchUp();
      // The server logs a request after it has answered, so an event can arrive before its request is in the log.
      const requests = await auditLog();
      return { requests, events: events.slice() };
    },
    stop: () => ending.abort(),
  };
}
