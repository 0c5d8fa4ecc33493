// Calls to many pods: a bounded number of them at a time.

/** States how many pods are asked at a time. */
const parallelCalls = 32;

/**
 * What the tasks answered, in the order of the items; at most 32 tasks at a time, begun in that order. A task that answers undefined did
 * nothing, and is left out. Rejects with what a task rejects with.
 */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  task: (item: Item) => Promise<Result | undefined>,
): Promise<readonly Result[]> {
  const results: (Result | undefined)[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(parallelCalls, items.length) }, worker));
  return results.filter((result) => result !== undefined);
}
