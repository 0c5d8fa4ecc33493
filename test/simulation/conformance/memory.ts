// What a server has said so far in a sequence, and how requests are filled with it.
import type { FilledRequest, Operation } from './operation.ts';

interface State {
  readonly uid: string;
  readonly resourceVersion: string;
}

interface Named {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly uid?: string; readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly Named[];
}

/** In place of the UID of an object that was never seen. */
const unknownUid = '00000000-0000-4000-8000-000000000000';

/** Owns what one server said in one sequence. */
export class Memory {
  readonly #namespace: string;
  readonly #states = new Map<string, State[]>();
  #start = '1';
  #list: string | undefined;
  #continue = '';

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** Takes note of the objects in an answer. The first resourceVersion of all is the one where the sequence starts. */
  hear(path: string, body: unknown): void {
    const named = body as Named | null;
    const { metadata, items } = named ?? {};
    if (typeof metadata !== 'object' || metadata === null || named?.kind === 'Status') return;
    const place = /\/namespaces\/[^/?]+\/([^/?]+)/.exec(path)?.[1] ?? '';
    if (Array.isArray(items)) {
      this.#list = metadata.resourceVersion ?? this.#list;
      this.#continue = metadata.continue ?? '';
      for (const item of items as readonly Named[]) this.#note(place, item.metadata);
    } else {
      this.#note(place, metadata);
    }
  }

  /** The request with everything in angle brackets filled in. */
  fill({ method, path, contentType, body }: Operation): FilledRequest {
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    return {
      method,
      path: this.#filled(path),
      ...(contentType === undefined ? {} : { contentType }),
      ...(text === undefined ? {} : { body: this.#filled(text) }),
    };
  }

  #note(place: string, metadata: Named['metadata']): void {
    const { name, uid, resourceVersion } = metadata ?? {};
    if (name === undefined || uid === undefined || !resourceVersion) return;
    if (this.#states.size === 0) this.#start = resourceVersion;
    const key = `${place}/${name}`;
    const states = this.#states.get(key) ?? [];
    this.#states.set(key, states);
    if (states.at(-1)?.resourceVersion !== resourceVersion) states.push({ uid, resourceVersion });
  }

  #filled(text: string): string {
    return text.replace(/<(ns|uid|rv|continue)(?: ([^ >]+))?(?: ([^ >]+))?>/g, (_, what: string, key = '', which = '') => {
      switch (what) {
        case 'ns':
          return this.#namespace;
        case 'continue':
          return this.#continue;
        case 'uid':
          return this.#state(key, which)?.uid ?? unknownUid;
        default:
          if (key === 'start') return this.#start;
          if (key === 'list') return this.#list ?? this.#start;
          return this.#state(key, which)?.resourceVersion ?? this.#start;
      }
    });
  }

  /** The last state that was seen, the one before it, or the first. */
  #state(key: string, which: string): State | undefined {
    const states = this.#states.get(key);
    if (which === 'first') return states?.[0];
    return which === 'before' ? (states?.at(-2) ?? states?.[0]) : states?.at(-1);
  }
}
