// Shortens long texts.

/** Shortens text to at most `width` characters. Cuts in the middle, because names differ at both ends, and a message ends with its command. */
export function shorten(text: string, width: number, ellipsis = '...'): string {
  if (text.length <= width) return text;
  const head = Math.ceil((width - ellipsis.length) / 2);
  return `${text.slice(0, head)}${ellipsis}${text.slice(text.length - (width - ellipsis.length - head))}`;
}
