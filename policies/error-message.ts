// Reads the message of a thrown value. The one file that every part may import.

/** Returns the message of an Error, and the text of any other thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
