// Windows: schedules that can be read, ranges that end after they begin, and allow windows that are open together at some time.
import type { GroupDefinition, PolicyDefinition, WindowDefinition } from '../definition.ts';
import { type Finding, finding } from '../finding.ts';
import { policiesFor } from '../join.ts';
import { type PolicyAction, policyAction } from '../schema/rollout-policy.ts';
import { checkSchedule, combineWindows } from '../window.ts';
import { lowerFirst } from '../wording.ts';
import type { LintCheck, LintContext } from './context.ts';

/** Each schedule and each range on its own. */
export const windowTimes: LintCheck = (context) =>
  context.policies.flatMap((policy) => {
    const windows = policyDefinition(context, policy)?.windows ?? [];
    return windows.flatMap(({ schedule, ranges }, index) => [
      ...(schedule ? checkSchedule(schedule) : []).map(({ code, field, message, hint }) =>
        finding(code, policy.place(['spec', 'windows', index, 'schedule', field]), lowerFirst(message), { hint }),
      ),
      ...(ranges ?? []).flatMap(({ fromMs, toMs }, position): readonly Finding[] => {
        if (toMs > fromMs) return [];
        const place = policy.place(['spec', 'windows', index, 'ranges', position, 'to']);
        return [finding('RG2406', place, `the range ${position + 1} ends at or before its beginning`)];
      }),
    ]);
  });

/** Two policies that bind the same group, whose allow windows for an action are never open at the same time. */
export const windowsThatNeverMeet: LintCheck = (context) => {
  const reported = new Set<string>();
  return context.bundle.groups.flatMap((group) =>
    policyAction.options.flatMap((action) =>
      allowPairs(context, group, action).flatMap(([one, other]): readonly Finding[] => {
        const key = `${one.policy.namespace}/${one.policy.name} ${other.policy.namespace}/${other.policy.name}`;
        const document = context.policies.find((policy) => policyDefinition(context, policy) === other.policy);
        if (reported.has(key) || !document || !neverMeet(one.windows, other.windows, action)) return [];
        reported.add(key);
        const index = other.policy.windows.findIndex((window) => other.windows.includes(window));
        const message = `the allow windows of ${one.policy.name} and ${other.policy.name} are never open together, so ${action} of ${group.name} is blocked for ever`;
        const related = one.windows.slice(0, 1).map((window) => window.source);
        return [finding('RG2407', document.place(['spec', 'windows', index, 'name']), message, { related })];
      }),
    ),
  );
};

interface AllowWindows {
  readonly policy: PolicyDefinition;
  readonly windows: readonly WindowDefinition[];
}

function allowPairs(
  context: LintContext,
  group: GroupDefinition,
  action: PolicyAction,
): readonly (readonly [AllowWindows, AllowWindows])[] {
  const bound = policiesFor(context.bundle.policies, group, context.agentNamespace)
    .map((policy) => ({ policy, windows: policy.windows.filter((one) => one.kind === 'allow' && one.actions.includes(action)) }))
    .filter(({ windows }) => windows.length > 0 && windows.every(isReadable));
  return bound.flatMap((other, index) => bound.slice(0, index).map((one) => [one, other] as const));
}

/** A window that cannot be read, or never opens, is reported as such. */
function isReadable({ schedule }: WindowDefinition): boolean {
  return schedule === undefined || checkSchedule(schedule).length === 0;
}

/** A year and a day of openings, and no more of them than this: what is not decided by then is left alone. */
const horizonMs = 367 * 86_400_000;
const openingsLimit = 400;

function neverMeet(one: readonly WindowDefinition[], other: readonly WindowDefinition[], action: PolicyAction): boolean {
  const begins = [...one, ...other].flatMap(({ ranges }) => (ranges ?? []).map(({ fromMs }) => fromMs));
  const startMs = begins.length > 0 ? Math.min(...begins) : Date.UTC(2026, 0, 1);
  // Ranges come to an end, so their openings are the ones to walk through.
  const [walked, met] = other.every(({ ranges }) => ranges) ? [other, one] : [one, other];
  let atMs: number | undefined = startMs;
  for (let count = 0; count < openingsLimit; count += 1) {
    if (atMs === undefined || atMs > startMs + horizonMs) return true;
    const span = combineWindows(walked, action, atMs);
    if (span.isOpen && opensBefore(met, action, atMs, span.changesMs)) return false;
    atMs = span.changesMs;
  }
  return false;
}

function opensBefore(windows: readonly WindowDefinition[], action: PolicyAction, fromMs: number, toMs = Number.POSITIVE_INFINITY): boolean {
  const state = combineWindows(windows, action, fromMs);
  return state.isOpen || (state.changesMs !== undefined && state.changesMs < toMs);
}

function policyDefinition(
  { bundle }: LintContext,
  policy: { readonly namespace: string; readonly name: string },
): PolicyDefinition | undefined {
  return bundle.policies.find((one) => one.namespace === policy.namespace && one.name === policy.name);
}
