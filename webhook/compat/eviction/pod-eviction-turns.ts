// Runs work under one key in the order of arrival.

/** Queues by key. A key without waiting work is dropped. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs the work after all earlier work under the key, whether that succeeded or failed. */
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
