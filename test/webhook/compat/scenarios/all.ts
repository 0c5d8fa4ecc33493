// Every recorded scenario of the compatibility endpoints.
import { noDownscaleScenarios } from './no-downscale.ts';
import { prepareCallScenarios } from './prepare-calls.ts';
import { prepareDownscaleScenarios } from './prepare-downscale.ts';
import type { WebhookScenario } from './scenario.ts';
import { zoneTrackerScenarios } from './zone-tracker.ts';

export const scenarios: readonly WebhookScenario[] = [
  ...noDownscaleScenarios,
  ...prepareDownscaleScenarios,
  ...prepareCallScenarios,
  ...zoneTrackerScenarios,
];
