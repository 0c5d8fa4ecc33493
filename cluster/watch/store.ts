// Stores one view of each object for a reflector. An older state never replaces a newer one.
import { compareResourceVersions } from '../request/resource.ts';

export interface Store<View> {
  /** Returns the view of an object. Objects without a namespace are under the empty namespace. */
  readonly get: (namespace: string, name: string) => View | undefined;
  /** Returns the views of a namespace, or of all namespaces if `namespace` is absent, in no defined order. A changed object keeps its place. */
  readonly list: (namespace?: string) => readonly View[];
  /** Returns the existing objects that could not be parsed. `list` does not contain them: their state is unknown. */
  readonly invalid: () => readonly InvalidObject[];
}

export interface InvalidObject {
  readonly namespace: string;
  readonly name: string;
  readonly message: string;
}

export interface Change<View> {
  /** An object that was recreated with a new UID is `deleted`, then `added`. */
  readonly kind: 'added' | 'modified' | 'deleted';
  readonly namespace: string;
  readonly name: string;
  /** Absent for a deleted or unparsable object. */
  readonly view?: View;
  readonly before?: View;
}

export interface Entry<View> {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly content: { readonly kind: 'view'; readonly view: View } | { readonly kind: 'invalid'; readonly message: string };
}

export class Entries<View> implements Store<View> {
  readonly #namespaces = new Map<string, Map<string, Entry<View>>>();
  readonly #invalid = new Map<Entry<View>, InvalidObject>();

  readonly get = (namespace: string, name: string): View | undefined => viewOf(this.#entry(namespace, name)).view;

  readonly list = (namespace?: string): readonly View[] => {
    const views: View[] = [];
    const inside =
      namespace === undefined ? this.#namespaces.values() : [this.#namespaces.get(namespace) ?? new Map<string, Entry<View>>()];
    for (const entries of inside) {
      for (const { content } of entries.values()) if (content.kind === 'view') views.push(content.view);
    }
    return views;
  };

  readonly invalid = (): readonly InvalidObject[] => [...this.#invalid.values()];

  #entry(namespace: string, name: string): Entry<View> | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  /** Stores the state of one object, unless the known state of the same UID is as new or newer. */
  put(entry: Entry<View>): readonly Change<View>[] {
    const { namespace, name, uid, resourceVersion } = entry;
    const known = this.#entry(namespace, name);
    if (known === undefined) {
      this.#set(entry);
      return [{ kind: 'added', namespace, name, ...viewOf(entry) }];
    }
    if (known.uid !== uid) return [...this.remove(namespace, name), ...this.put(entry)];
    const order = compareResourceVersions(resourceVersion, known.resourceVersion);
    if (order !== undefined && order <= 0) return [];
    this.#invalid.delete(known);
    this.#set(entry);
    return [{ kind: 'modified', namespace, name, ...viewOf(entry), ...beforeOf(known) }];
  }

  remove(namespace: string, name: string): readonly Change<View>[] {
    const known = this.#entry(namespace, name);
    if (known === undefined) return [];
    this.#unset(known);
    return [{ kind: 'deleted', namespace, name, ...beforeOf(known) }];
  }

  /** Stores the objects of a complete list and removes all other objects. */
  replace(entries: readonly Entry<View>[]): readonly Change<View>[] {
    const listed = new Set(entries.map(({ namespace, name }) => `${namespace}/${name}`));
    const gone = [...this.#namespaces.values()]
      .flatMap((known) => [...known.values()])
      .filter(({ namespace, name }) => !listed.has(`${namespace}/${name}`));
    return [...gone.flatMap(({ namespace, name }) => this.remove(namespace, name)), ...entries.flatMap((entry) => this.put(entry))];
  }

  #set(entry: Entry<View>): void {
    const { namespace, name, content } = entry;
    const inside = this.#namespaces.get(namespace) ?? new Map<string, Entry<View>>();
    this.#namespaces.set(namespace, inside.set(name, entry));
    if (content.kind === 'invalid') this.#invalid.set(entry, { namespace, name, message: content.message });
  }

  #unset(entry: Entry<View>): void {
    const inside = this.#namespaces.get(entry.namespace);
    inside?.delete(entry.name);
    if (inside?.size === 0) this.#namespaces.delete(entry.namespace);
    this.#invalid.delete(entry);
  }
}

function viewOf<View>(entry: Entry<View> | undefined): { readonly view?: View } {
  return entry?.content.kind === 'view' ? { view: entry.content.view } : {};
}

function beforeOf<View>(entry: Entry<View>): { readonly before?: View } {
  return entry.content.kind === 'view' ? { before: entry.content.view } : {};
}
