// Shortens long texts.

/** The API server's limit for the note of an Event, in bytes. */
const eventNoteBytes = 1024;

/** Shortens text to at most `width` characters. Cuts in the middle, because names differ at both ends, and a message ends with its command. */
export function shorten(text: string, width: number, ellipsis = '...'): string {
  if (text.length <= width) return text;
  const head = Math.ceil((width - ellipsis.length) / 2);
  return `${text.slice(0, head)}${ellipsis}${text.slice(text.length - (width - ellipsis.length - head))}`;
}

/** Shortens a text to `most` UTF-16 units with an ellipsis at its end; never cuts a surrogate pair. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most - 1);
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}

/** Shortens the note of an Event to the limit of the API server, which counts bytes in UTF-8. `end` is kept whole. */
export function eventNote(text: string, end = ''): string {
  const bytes = (value: string): number => new TextEncoder().encode(value).length;
  for (let width = eventNoteBytes - bytes(end); ; width -= 1) {
    const note = `${shorten(text, width)}${end}`;
    if (bytes(note) <= eventNoteBytes) return note;
  }
}
