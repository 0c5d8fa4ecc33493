// What a defect is: a mistake that somebody could have made in the agent or the engine, as an edit of the sources.

/** One passage of one file. */
export interface Edit {
  /** From the root of the repository. */
  readonly file: string;
  /** As it stands there, exactly once. */
  readonly find: string;
  readonly replace: string;
}

export interface Defect {
  /** Also the name of its stored plan. */
  readonly id: string;
  /** What the agent does wrong, as a sentence about it. */
  readonly title: string;
  readonly edits: readonly Edit[];
  /** Which layers would have made up for the mistake, when they had to be taken away as well. */
  readonly alsoWithout?: string;
  /** Invariants of which at least one must be found broken; `unfinished` for a group that does not converge, is not quiet or leaves something behind. */
  readonly breaks: readonly string[];
}

/** The text with the edits made. Throws when a passage does not stand there exactly once: then the defect no longer says what it was meant to say. */
export function edited(text: string, edits: readonly Edit[]): string {
  let current = text;
  for (const { file, find, replace } of edits) {
    const count = text.split(find).length - 1;
    if (count !== 1) throw new Error(`${file} has ${count} times what a defect replaces once: ${find.trim().slice(0, 120)}`);
    if (current.split(find).length !== 2) throw new Error(`two edits of ${file} overlap at: ${find.trim().slice(0, 120)}`);
    current = current.replace(find, () => replace);
  }
  return current;
}

/** The edits of each file. */
export function byFile(edits: readonly Edit[]): ReadonlyMap<string, readonly Edit[]> {
  const files = new Map<string, Edit[]>();
  for (const edit of edits) {
    const known = files.get(edit.file);
    if (known === undefined) files.set(edit.file, [edit]);
    else known.push(edit);
  }
  return files;
}
