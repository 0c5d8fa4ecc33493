// Draws the requests of people and autoscalers: rollouts, changes of mind, replica counts, pauses.
import type { FaultClass } from '../../faults/fault.ts';
import { letterOf } from '../../letter.ts';
import { between, oneOf, type Random, wholeBetween } from '../../random.ts';
import type { GroupShape, ScenarioEvent } from '../../scenario.ts';

/** Input of drawn events. */
export interface Ground {
  readonly group: GroupShape;
  readonly agents: number;
  /** Events and their effects end by then. */
  readonly endMs: number;
  readonly isDrawn: (faultClass: FaultClass) => boolean;
}

/** The initial image of every pod. */
const firstImage = 'app:1';

type Story = (random: Random, ground: Ground, atMs: number) => readonly ScenarioEvent[];

const at = (atMs: number): number => Math.round(atMs);

const rollout: Story = (_, __, atMs) => [{ atMs, kind: 'setImage', image: 'app:2' }];

/** Another image before the first one is everywhere. */
const secondRollout: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'app:2' },
  { atMs: at(atMs + between(random, 5000, 150_000)), kind: 'setImage', image: 'app:3' },
];

const rollback: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'app:2' },
  { atMs: at(atMs + between(random, 5000, 150_000)), kind: 'setImage', image: firstImage },
];

const brokenThenBack: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'broken/app:2' },
  { atMs: at(atMs + between(random, 20_000, 150_000)), kind: 'setImage', image: firstImage },
];

const brokenThenForward: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'broken/app:2' },
  { atMs: at(atMs + between(random, 20_000, 150_000)), kind: 'setImage', image: 'app:3' },
];

/** People apply zone by zone. */
const oneZoneFirst: Story = (random, { group }, atMs) => {
  const zone = letterOf(wholeBetween(random, 0, group.zones));
  return [
    { atMs, kind: 'setImage', image: 'app:2', zones: [zone] },
    { atMs: at(atMs + between(random, 2000, 60_000)), kind: 'setImage', image: 'app:2' },
  ];
};

/** Another replica count, at least one pod per zone. */
function changed(random: Random, { group }: Ground): number {
  const change = oneOf(random, group.podsPerZone > 2 ? [-2, -1, -1, 1, 2] : [-1, 1, 2]);
  return Math.max(1, group.podsPerZone + change);
}

const scaled: Story = (random, ground, atMs) => [{ atMs, kind: 'setReplicas', replicas: changed(random, ground) }];

/** Reverted, half of the time while it is under way. */
const scaledAndBack: Story = (random, ground, atMs) => [
  { atMs, kind: 'setReplicas', replicas: Math.max(1, ground.group.podsPerZone - 1) },
  { atMs: at(atMs + between(random, 2000, 90_000)), kind: 'setReplicas', replicas: ground.group.podsPerZone },
];

/** An oscillating autoscaler. */
const autoscaled: Story = (random, ground, atMs) => {
  const count = wholeBetween(random, 3, 7);
  let nextMs = atMs;
  const events: ScenarioEvent[] = [];
  for (let index = 0; index < count; index += 1) {
    events.push({ atMs: at(nextMs), kind: 'setReplicas', replicas: changed(random, ground) });
    nextMs += between(random, 10_000, 60_000);
  }
  return events;
};

const paused: Story = (random, _, atMs) => [
  { atMs, kind: 'pause' },
  { atMs: at(atMs + between(random, 10_000, 120_000)), kind: 'resume' },
];

const templates: readonly Story[] = [secondRollout, rollback, brokenThenBack, brokenThenForward, oneZoneFirst];

/** Returns the requests in no particular order. All of them end before `ground.endMs`. */
export function drawnStories(random: Random, ground: Ground): readonly ScenarioEvent[] {
  const latestMs = ground.endMs - 170_000;
  const soon = (): number => at(between(random, 5000, Math.min(90_000, latestMs)));
  const sometime = (): number => at(between(random, 5000, latestMs));
  const stories: (readonly ScenarioEvent[])[] = [];
  // Changes of mind are a class of faults; so are autoscalers.
  const template = ground.isDrawn('F18') && random() < 0.7 ? oneOf(random, templates) : rollout;
  const scale = ground.isDrawn('F17') && random() < 0.3 ? autoscaled : oneOf(random, [scaled, scaledAndBack]);
  const what = random();
  if (what < 0.85) stories.push(template(random, ground, soon()));
  if (what >= 0.5) stories.push(scale(random, ground, sometime()));
  if (random() < 0.25) stories.push(paused(random, ground, sometime()));
  return stories.flat().filter((event) => event.atMs < ground.endMs - 5000);
}
