// The tolerance for stored times: clocks of processes differ.

/** Reports whether a stored time can be true: it is at most 30 s ahead of the clock. */
export function isWithinClockSkew({ nowMs }: { readonly nowMs: number }, instant: number): boolean {
  return instant <= nowMs + 30_000;
}
