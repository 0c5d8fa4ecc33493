// The reason, in PascalCase, under which events, conditions and metrics name a rule.

/** As Kubernetes limits the reason of an Event. */
const longestReason = 128;

/** `other-zones-ready` becomes `OtherZonesReady`; of a rule of a RolloutPolicy, `policy/rule`, the rule's own name counts. */
export function reasonOf(rule: string): string {
  const words = rule
    .slice(rule.lastIndexOf('/') + 1)
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '');
  const reason = words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join('');
  return reason === '' ? 'Policy' : reason.slice(0, longestReason);
}
