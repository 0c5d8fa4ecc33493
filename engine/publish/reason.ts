// Reasons of conditions and events: the names of rules as Kubernetes writes reasons.

/** `zone-gap` becomes `ZoneGap`, `stateful-safety/queue.empty` becomes `StatefulSafetyQueueEmpty`. What begins with a digit gets `Rule` before it. */
export function reasonOf(rule: string): string {
  const words = rule.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const reason = words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join('');
  return /^[A-Za-z]/.test(reason) ? reason : `Rule${reason}`;
}
