// Judges runs that have ended (S38): agents replace no pod in a failed or aborted run until a person requests a retry.
import { intentResource, textAt } from '../objects.ts';
import type { Commit } from '../server/request.ts';
import { disruptedByUs } from './availability.ts';
import type { Moment, Oracle } from './oracle.ts';
import { exposedByUs } from './partitions.ts';
import type { Book } from './places.ts';

/** Creates the judge. It sees each commit before the book records it. */
export function judgeRuns(book: Book): Oracle {
  /** The times of the verified aborts by the id of their run. */
  const abortedMs = new Map<string, number>();
  return {
    committed: (commit) => {
      const { resource, after, actor, atMs } = commit;
      if (resource === intentResource && commit.type === 'ADDED') noteRequest(abortedMs, commit);
      const isOurs = disruptedByUs(book, commit) !== undefined || exposedByUs(book, commit).length > 0;
      const why = isOurs ? endOf(book, abortedMs, book.momentOf({ actor, atMs })) : undefined;
      if (why !== undefined) book.scene.violated('S38', `${actor.process ?? ''} disrupts ${after.metadata.name} in ${why}`);
    },
  };
}

/** Describes the run if every decision at this time knows that it has ended; else returns undefined. */
function endOf(
  { runs }: Book,
  abortedMs: ReadonlyMap<string, number>,
  { fromMs, atMs }: Pick<Moment, 'fromMs' | 'atMs'>,
): string | undefined {
  const seen = runs.since(fromMs);
  const [run] = seen;
  if (run === undefined || seen.some((one) => one?.id !== run.id)) return undefined;
  if (seen.every((one) => one?.outcome === 'failed')) return `the failed run ${run.id}`;
  return (abortedMs.get(run.id) ?? atMs) <= fromMs ? `the aborted run ${run.id}` : undefined;
}

function noteRequest(abortedMs: Map<string, number>, { after, atMs }: Commit): void {
  const [action, runId] = [textAt(after, 'spec', 'action'), textAt(after, 'spec', 'runId')];
  if (runId === undefined || textAt(after, 'spec', 'requestedBy', 'user') === undefined) return;
  if (action === 'abort') abortedMs.set(runId, atMs);
  if (action === 'retry') abortedMs.delete(runId);
}
