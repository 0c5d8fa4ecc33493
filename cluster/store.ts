// What a reflector knows of its collection: one view per object, kept by namespace and name.

/** Read-only to everybody but the reflector. */
export interface Store<View> {
  /** Objects without a namespace are under the empty one. */
  readonly get: (namespace: string, name: string) => View | undefined;
  /** In no particular order; of every namespace when none is named. */
  readonly list: (namespace?: string) => readonly View[];
  /** Objects that exist and could not be understood. They are in no list: whoever asks about them must take the answer as unknown. */
  readonly invalid: () => readonly InvalidObject[];
  readonly size: () => number;
}

export interface InvalidObject {
  readonly namespace: string;
  readonly name: string;
  /** What was wrong with it. */
  readonly message: string;
}
