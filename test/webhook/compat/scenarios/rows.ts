// The rows of the tables of behaviour that the compatibility endpoints keep to. Each must be proved by a scenario.

function numbered(endpoint: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${endpoint} ${index + 1}`);
}

/** In the order in which each endpoint evaluates them. */
export const rows: readonly string[] = [
  ...numbered('no-downscale', 11),
  ...numbered('prepare-downscale', 15),
  // With the zone tracker, these stand in place of rows 10 and 14.
  'zone-tracker 10',
  'zone-tracker 14',
  'zone-tracker first downscale',
  'zone-tracker lock',
  'zone-tracker without a group',
];
