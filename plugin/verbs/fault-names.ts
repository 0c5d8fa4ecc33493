// The names of the faults that a simulation can draw.

/** All fault names, in the order of docs/simulate.md. */
export const faultNames: readonly string[] = [
  ...['network', 'conflicts', 'watch', 'server', 'crash', 'pause', 'clock', 'lease', 'pods', 'nodes', 'controllers', 'webhook', 'people'],
];

/** The default faults: each of them happens in any cluster within a week. */
export const usualFaults: readonly string[] = ['network', 'watch', 'crash', 'pods'];
