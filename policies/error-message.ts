// Reads the message of a thrown value. Every part may import this file.

/** Returns the message of an Error, and the text of any other thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
