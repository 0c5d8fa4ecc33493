// The parts of the messages that the acting verbs print.

/** Returns ` (REASON)`, or an empty text without a reason. */
export function reasonSuffix(reason: string | undefined): string {
  return reason === undefined ? '' : ` (${reason})`;
}

/** Returns `mimir/ingester zone zone-b`, or only the name of the group. */
export function placeText(name: string, zone: string | undefined): string {
  return zone === undefined ? name : `${name} zone ${zone}`;
}
