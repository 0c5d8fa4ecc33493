// Lets what belongs together happen one after the other, in the order in which it was asked for.

/** Queues by key. Nothing is kept of a key under which nobody waits. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Does the work when all earlier work under the key is over, whether it succeeded or not. */
  async take<Value>(key: string, work: () => Promise<Value>): Promise<Value> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work);
    const over = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, over);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key);
    }
  }
}
