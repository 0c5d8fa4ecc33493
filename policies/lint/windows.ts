// Lint checks of windows: invalid schedules and ranges, and allow windows that are never open together.
import type { GroupDefinition, PolicyDefinition, WindowDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { policiesFor } from '../join.ts';
import { type PolicyAction, policyAction } from '../schema/rollout-policy.ts';
import { checkSchedule, windowState } from '../window/window.ts';
import { lowerFirst } from '../wording.ts';
import type { LintCheck, LintContext } from './context.ts';

/** Reports invalid schedules and ranges. */
export const checkWindowTimes: LintCheck = (context) =>
  context.policies.flatMap((policy) => {
    const windows = policyDefinition(context, policy)?.windows ?? [];
    return windows.flatMap(({ schedule, ranges }, index) => [
      ...(schedule ? checkSchedule(schedule) : []).map(({ code, field, message, hint }) =>
        finding(code, policy.place(['spec', 'windows', index, 'schedule', field]), lowerFirst(message), { hint }),
      ),
      ...(ranges ?? []).flatMap(({ fromMs, toMs }, position): readonly Finding[] => {
        if (toMs > fromMs) return [];
        const place = policy.place(['spec', 'windows', index, 'ranges', position, 'to']);
        return [finding('RG2406', place, `the range ${position + 1} is empty: it ends at or before its beginning`)];
      }),
    ]);
  });

/** Reports two policies of one group whose allow windows for an action are never open at the same time. */
export const findDisjointWindows: LintCheck = (context) => {
  const reported = new Set<string>();
  return context.bundle.groups.flatMap((group) =>
    policyAction.options.flatMap((action) =>
      allowPairs(context, group, action).flatMap(([one, other]): readonly Finding[] => {
        const key = `${one.policy.namespace}/${one.policy.name} ${other.policy.namespace}/${other.policy.name}`;
        const document = context.policies.find((policy) => policyDefinition(context, policy) === other.policy);
        if (reported.has(key) || !document || !neverOverlap(one.windows, other.windows)) return [];
        reported.add(key);
        const index = other.policy.windows.findIndex((window) => other.windows.includes(window));
        const message = `${action} of ${group.name} is always blocked: the allow windows of ${one.policy.name} and ${other.policy.name} are never open together`;
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
    .filter(({ windows }) => windows.length > 0);
  return bound.flatMap((other, index) => bound.slice(0, index).map((one) => [one, other] as const));
}

const dayMs = 86_400_000;

/** Most openings of one window that are searched; without a result there is no finding. */
const openingsLimit = 200;

/** Reports whether no opening of one side overlaps an opening of the other side. Returns false if that is unknown. */
function neverOverlap(one: readonly WindowDefinition[], other: readonly WindowDefinition[]): boolean {
  const all = [...one, ...other];
  // A window that is invalid or never opens has another finding.
  if (all.some(({ schedule }) => schedule && checkSchedule(schedule).length > 0)) return false;
  const begins = all.flatMap(({ ranges }) => (ranges ?? []).map(({ fromMs }) => fromMs));
  const fromMs = begins.length > 0 ? Math.min(...begins) : Date.UTC(2026, 0, 1);
  const toMs = fromMs + (repeatsWeekly(all) ? 15 : 367) * dayMs;
  // Ranges end, so the search walks through their openings.
  const [walked, met] = other.every(({ ranges }) => ranges) ? [other, one] : [one, other];
  return walked.every((window) => isAlone(window, met, fromMs, toMs));
}

/** Reports whether all windows repeat weekly in one time zone, so that two weeks show every case. */
function repeatsWeekly(windows: readonly WindowDefinition[]): boolean {
  const zones = new Set(windows.map(({ schedule }) => schedule?.timeZone));
  return zones.size === 1 && windows.every(({ schedule }) => /^\S+\s+\S+\s+\*\s+\*\s/.test(schedule?.cron ?? ''));
}

function isAlone(window: WindowDefinition, others: readonly WindowDefinition[], fromMs: number, toMs: number): boolean {
  let atMs: number | undefined = fromMs;
  for (let count = 0; count < 2 * openingsLimit; count += 1) {
    if (atMs === undefined || atMs > toMs) return true;
    const state = windowState(window, atMs);
    const { closesMs = Number.POSITIVE_INFINITY } = state;
    if (state.isOpen && opensBefore(others, atMs, closesMs)) return false;
    atMs = state.isOpen ? state.closesMs : state.nextOpensMs;
  }
  return false;
}

function opensBefore(windows: readonly WindowDefinition[], fromMs: number, toMs: number): boolean {
  return windows.some((window) => {
    const { isOpen, nextOpensMs } = windowState(window, fromMs);
    return isOpen || (nextOpensMs !== undefined && nextOpensMs < toMs);
  });
}

function policyDefinition(
  { bundle }: LintContext,
  policy: { readonly namespace: string; readonly name: string },
): PolicyDefinition | undefined {
  return bundle.policies.find((one) => one.namespace === policy.namespace && one.name === policy.name);
}
