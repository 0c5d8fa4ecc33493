// The kinds of fault that a simulation draws, as people name them.

/** In the order in which docs/simulate.md tells what they are. */
export const faultNames: readonly string[] = [
  ...['network', 'conflicts', 'watch', 'server', 'crash', 'pause', 'clock', 'lease', 'pods', 'nodes', 'controllers', 'webhook', 'people'],
];

/** What happens in any cluster in a week. */
export const usualFaults: readonly string[] = ['network', 'watch', 'crash', 'pods'];
