// Which StatefulSet of a group is being prepared in this process: another one of the group waits for its turn.

export class GroupLocks {
  readonly #holders = new Map<string, { readonly statefulSet: string }>();

  /** Takes the lock, or tells who holds it. The answer of a success gives it back; giving it back twice does nothing. */
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
