// Which stored instants can be true, now that clocks differ and are set.

/** Whether a stored instant can be true: no more than 30 s ahead of the clock. */
export function isBelievable({ nowMs }: { readonly nowMs: number }, instant: number): boolean {
  return instant <= nowMs + 30_000;
}
