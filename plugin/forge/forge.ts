// Defines a forge, the server of a pull or merge request, and keeps exactly one comment per environment there.
import { setTimeout as sleep } from 'node:timers/promises';
import { exitCodes, Failure } from '../failure.ts';
import type { CommentOutcome } from './comment-text.ts';
import { UnknownOutcome } from './forge-http.ts';

export interface Comment {
  /** Ids grow, so the comment with the lowest id is the oldest. */
  readonly id: number;
  readonly body: string;
}

interface CommitStatus {
  readonly commit: string;
  readonly context: string;
  readonly outcome: CommentOutcome;
  readonly description: string;
  readonly targetUrl?: string;
}

/** A forge with a token and one pull or merge request. Each method rejects with a Failure. */
export interface Forge {
  /** The latest commit of the request; undefined if the request is closed or merged. */
  readonly headCommit: () => Promise<string | undefined>;
  /** Returns the comments that the owner of the token wrote, on all pages. */
  readonly ownComments: () => Promise<readonly Comment[]>;
  /** Rejects with UnknownOutcome if the forge may have created the comment. */
  readonly create: (body: string) => Promise<Comment>;
  /** Returns false if the comment does not exist any more. */
  readonly update: (id: number, body: string) => Promise<boolean>;
  /** Succeeds also if the comment does not exist any more. */
  readonly remove: (id: number) => Promise<void>;
  readonly setStatus: (status: CommitStatus) => Promise<void>;
}

type Posted = 'created' | 'updated' | 'unchanged';

/** The most attempts at one comment: another run, or a person, can delete it in between. */
const maxAttempts = 4;

/**
 * Creates the comment, or updates the oldest of the comments that `isEarlier` accepts and deletes the others. After a creation it reads
 * the comments again, because another run may have created one at the same time. Both runs then keep the same comment.
 */
export async function postComment(forge: Forge, body: string, isEarlier: (body: string) => boolean): Promise<Posted> {
  let created: Comment | undefined;
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const [kept, ...others] = oldestFirst(
      created,
      (await forge.ownComments()).filter((comment) => isEarlier(comment.body)),
    );
    if (kept === undefined) {
      created = await createUnlessUnknown(forge, body, attempt === maxAttempts);
      continue;
    }
    const posted = await updateTo(forge, kept, body);
    if (posted !== undefined) {
      for (const { id } of others) await forge.remove(id);
      return created === undefined ? posted : 'created';
    }
    created = undefined;
  }
  throw new Failure({
    exitCode: exitCodes.stale,
    what: 'the comment was deleted after each attempt to write it',
    todo: 'find the job or person that deletes it',
  });
}

/** Adds the created comment, which the list of a forge may not contain yet. */
function oldestFirst(created: Comment | undefined, listed: readonly Comment[]): readonly Comment[] {
  const isListed = created === undefined || listed.some(({ id }) => id === created.id);
  return [...listed, ...(isListed ? [] : [created])].sort((a, b) => a.id - b.id);
}

/** Returns undefined if the comment does not exist any more. */
async function updateTo(forge: Forge, { id, body: earlier }: Comment, body: string): Promise<Posted | undefined> {
  if (sameText(earlier, body)) return 'unchanged';
  return (await forge.update(id, body)) ? 'updated' : undefined;
}

/** Returns undefined if the forge may have created the comment. The caller reads the comments again. */
async function createUnlessUnknown(forge: Forge, body: string, isLast: boolean): Promise<Comment | undefined> {
  try {
    return await forge.create(body);
  } catch (error) {
    if (!(error instanceof UnknownOutcome) || isLast) throw error;
    await sleep(pauseMs);
    return undefined;
  }
}

/** The time in which a forge that gave no answer finishes the request. */
const pauseMs = 1_000;

/** Compares texts, of which a forge can change the line breaks and the white space at the end. */
function sameText(one: string, other: string): boolean {
  return one.replaceAll('\r\n', '\n').trimEnd() === other.trimEnd();
}
