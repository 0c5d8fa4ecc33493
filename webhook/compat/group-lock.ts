// Tracks the StatefulSet of a group that this process prepares; others of the group wait.

export class GroupLocks {
  readonly #holders = new Map<string, { readonly statefulSet: string }>();

  /** Takes the lock, or returns its holder. Releasing it twice does nothing. */
  take(key: string, statefulSet: string): { readonly release: () => void } | { readonly heldBy: string } {
    const holder = this.#holders.get(key);
    if (holder !== undefined) return { heldBy: holder.statefulSet };
    const own = { statefulSet };
    this.#holders.set(key, own);
    return {
      release: () => {
        if (this.#holders.get(key) === own) this.#holders.delete(key);
      },
    };
  }
}
