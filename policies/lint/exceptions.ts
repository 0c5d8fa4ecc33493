// Exceptions and intents: what they name exists, and exceptions never meet.
import type { ExceptionDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import { unyieldingRules } from '../rollout/rules-without-exception.ts';
import { suggestion } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import { groupOf, type LintCheck, type LintContext, unknownGroup } from './context.ts';

/** Exceptions never combine: two that could hold at the same moment for the same rule and target are an error. */
export const meetingExceptions: LintCheck = ({ exceptions, bundle }) =>
  exceptions.flatMap((document) => {
    const own = bundle.exceptions.find((one) => one.namespace === document.namespace && one.name === document.name);
    const other = own && bundle.exceptions.find((one) => one !== own && canMeet(one, own));
    if (!other) return [];
    const message = `the exceptions ${document.name} and ${other.name} cover the same rule and target; neither is used`;
    return [finding('RG2306', document.place(['spec', 'rule']), message, { related: [other.source] })];
  });

function canMeet(a: ExceptionDefinition, b: ExceptionDefinition): boolean {
  const isSameTarget = a.namespace === b.namespace && a.rule === b.rule && a.group === b.group;
  const isSameZone = a.zone === undefined || b.zone === undefined || a.zone === b.zone;
  const start = (one: ExceptionDefinition) => one.notBeforeMs ?? Number.NEGATIVE_INFINITY;
  return isSameTarget && isSameZone && start(a) < b.expiresMs && start(b) < a.expiresMs;
}

export const exceptionsThatNeverHold: LintCheck = ({ exceptions, bundle }) =>
  exceptions.flatMap((document) => {
    const { notBeforeMs, expiresMs } =
      bundle.exceptions.find((one) => one.namespace === document.namespace && one.name === document.name) ?? {};
    if (notBeforeMs === undefined || expiresMs === undefined || expiresMs > notBeforeMs) return [];
    const { notBefore, expires } = document.value.spec;
    return [finding('RG2307', document.place(['spec', 'expires']), `the exception ends at ${expires} and begins at ${notBefore}`)];
  });

/**
 * The rule of an exception is one of a policy of its namespace (or of the agent's), or one of the engine. A policy that is not in the files
 * may be elsewhere, unless it has nearly the name of one that is.
 */
export const unknownRules: LintCheck = (context) =>
  context.exceptions.flatMap((document): readonly Finding[] => {
    const { rule } = document.value.spec;
    const known = [...policyRules(context, document.namespace), ...(context.engineRules ?? [])];
    const [policyName = '', ruleName] = rule.split('/');
    const isUnusable = context.load.unusable.some((one) => one.kind === 'RolloutPolicy' && one.name === policyName);
    if (known.includes(rule) || isUnusable || (ruleName === undefined && context.engineRules === undefined)) return [];
    const place = document.place(['spec', 'rule']);
    const hint = suggestion(rule, known);
    const isElsewhere = ruleName !== undefined && hint === undefined && !known.some((one) => one.startsWith(`${policyName}/`));
    if (isElsewhere) return [finding('RG2206', place, `only the agent knows the policy ${policyName}`)];
    return [finding('RG2305', place, `the rule ${rule} does not exist`, { hint })];
  });

/** Rules that no exception lets pass. */
export const unyieldingExceptions: LintCheck = ({ exceptions }) =>
  exceptions.flatMap((document) => {
    const { rule } = document.value.spec;
    return unyieldingRules.includes(rule) ? [finding('RG2310', document.place(['spec', 'rule']), `no exception lets ${rule} pass`)] : [];
  });

function policyRules({ bundle, agentNamespace }: LintContext, namespace: string): readonly string[] {
  return bundle.policies
    .filter((policy) => policy.namespace === namespace || policy.namespace === agentNamespace)
    .flatMap((policy) => [...policy.rules, ...policy.windows].map(({ name }) => `${policy.name}/${name}`));
}

export const exceptionTargets: LintCheck = (context) =>
  context.exceptions.flatMap((document) => {
    const { group, zone } = document.value.spec.target;
    return targetFindings(context, document, { group, zone, groupPath: ['spec', 'target', 'group'], zonePath: ['spec', 'target', 'zone'] });
  });

export const intentTargets: LintCheck = (context) =>
  context.intents.flatMap((document) => {
    const { group, zone } = document.value.spec;
    return [
      ...targetFindings(context, document, { group, zone, groupPath: ['spec', 'group'], zonePath: ['spec', 'zone'] }),
      ...waveFindings(context, document),
    ];
  });

interface Target {
  readonly group: string;
  readonly zone: string | undefined;
  readonly groupPath: Path;
  readonly zonePath: Path;
}

function targetFindings(context: LintContext, document: Places & { readonly namespace: string }, target: Target): readonly Finding[] {
  const group = groupOf(context, document.namespace, target.group);
  if (group === undefined) return [unknownGroup(context, document.place(target.groupPath), target.group, [document.namespace])];
  if (group === 'unusable' || target.zone === undefined) return [];
  const zones = group.zones.map((zone) => zone.name);
  if (zones.includes(target.zone)) return [];
  const message = `${target.zone} is no zone of the group ${target.group}`;
  return [finding('RG2105', document.place(target.zonePath), message, { hint: suggestion(target.zone, zones) })];
}

function waveFindings(context: LintContext, document: Loaded<'RolloutIntent'>): readonly Finding[] {
  const { group: name, wave, gate } = document.value.spec;
  const group = groupOf(context, document.namespace, name);
  if (group === undefined || group === 'unusable') return [];
  const waves = group.rollout.waves.map((one) => one.name);
  const gates = group.gates.map((one) => one.name);
  const related = group.sources[''] ? [group.sources['']] : [];
  return [
    ...(wave === undefined || waves.includes(wave)
      ? []
      : [
          finding('RG2308', document.place(['spec', 'wave']), `${wave} is no wave of the group ${name}`, {
            hint: suggestion(wave, waves),
            related,
          }),
        ]),
    ...(gate === undefined || gates.includes(gate)
      ? []
      : [
          finding('RG2107', document.place(['spec', 'gate']), `${gate} is no gate of the group ${name}`, {
            hint: suggestion(gate, gates),
            related,
          }),
        ]),
  ];
}
