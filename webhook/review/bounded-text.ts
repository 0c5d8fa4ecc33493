// Text of somebody else's making, cut to a length that an answer or a log line can bear.

const ellipsis = '…';

/**
 * The text in at most `maxBytes` bytes of UTF-8, which must be 3 or more. What is longer ends with an ellipsis, and no character is cut in two. Half a
 * surrogate pair, which no encoding of text can carry, becomes U+FFFD.
 */
export function boundedText(text: string, maxBytes: number): string {
  // Each UTF-16 unit takes at least one byte, so that nothing behind these can have room.
  const bytes = Buffer.from(text.slice(0, maxBytes + 1));
  if (bytes.length <= maxBytes) return bytes.toString();
  let end = maxBytes - Buffer.byteLength(ellipsis);
  // A byte 10xxxxxx continues the character before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end) + ellipsis;
}
