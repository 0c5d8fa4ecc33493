// Checks exceptions and intents for lint: names that do not exist, and exceptions that overlap or have no effect.
import type { ExceptionDefinition, PolicyDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import { canOverride } from '../rollout/rules-without-exception.ts';
import { suggestion } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import { eachException, findNamed, groupOf, type LintCheck, type LintContext, unknownGroup } from './context.ts';

/** Reports exceptions that are in force at the same time for one rule and target. Exceptions do not combine. */
const findOverlappingExceptions: LintCheck = eachException((document, { bundle }) => {
  const own = findNamed(bundle.exceptions, document);
  const other = own && bundle.exceptions.find((one) => one !== own && overlap(one, own));
  if (!other) return [];
  const message = `the exceptions ${document.name} and ${other.name} are not used: both cover the same rule and target`;
  return [finding('RG2306', document.place(['spec', 'rule']), message, { related: [other.source] })];
});

function overlap(a: ExceptionDefinition, b: ExceptionDefinition): boolean {
  const isSameTarget = a.namespace === b.namespace && a.rule === b.rule && a.group === b.group;
  const isSameZone = a.zone === undefined || b.zone === undefined || a.zone === b.zone;
  const start = (one: ExceptionDefinition) => one.notBeforeMs ?? Number.NEGATIVE_INFINITY;
  return isSameTarget && isSameZone && start(a) < b.expiresMs && start(b) < a.expiresMs;
}

const findExceptionsNeverInForce: LintCheck = eachException((document, { bundle }) => {
  const { notBeforeMs, expiresMs } = findNamed(bundle.exceptions, document) ?? {};
  if (notBeforeMs === undefined || expiresMs === undefined || expiresMs > notBeforeMs) return [];
  const { notBefore, expires } = document.value.spec;
  const message = `the exception is never in force: it ends at ${expires} and begins at ${notBefore}`;
  return [finding('RG2307', document.place(['spec', 'expires']), message)];
});

/** Reports exceptions with an unknown rule. A policy outside the files is only a notice, unless a known rule has a similar name. */
const findUnknownRules: LintCheck = eachException((document, context) => {
  const { rule } = document.value.spec;
  const known = [...policyRules(context, document.namespace), ...(context.engineRules ?? [])];
  const [policyName = '', ruleName] = rule.split('/');
  const isUnusable = context.load.unusable.some((one) => one.kind === 'RolloutPolicy' && one.name === policyName);
  if (known.includes(rule) || isUnusable || (ruleName === undefined && context.engineRules === undefined)) return [];
  const place = document.place(['spec', 'rule']);
  const hint = suggestion(rule, known);
  const isElsewhere = ruleName !== undefined && hint === undefined && !known.some((one) => one.startsWith(`${policyName}/`));
  if (isElsewhere) return [finding('RG2206', place, `the policy ${policyName} is not in the files: only the agent can check it`)];
  return [finding('RG2305', place, `the rule ${rule} does not exist`, { hint })];
});

const findExceptionsWithoutEffect: LintCheck = eachException((document, context) => {
  const { rule } = document.value.spec;
  return !canOverride(rule, policiesOf(context, document.namespace))
    ? [finding('RG2310', document.place(['spec', 'rule']), `the exception has no effect: no exception can override the rule ${rule}`)]
    : [];
});

function policyRules(context: LintContext, namespace: string): readonly string[] {
  return policiesOf(context, namespace).flatMap((policy) =>
    [...policy.rules, ...policy.windows].map(({ name }) => `${policy.name}/${name}`),
  );
}

function policiesOf({ bundle, agentNamespace }: LintContext, namespace: string): readonly PolicyDefinition[] {
  return bundle.policies.filter((policy) => policy.namespace === namespace || policy.namespace === agentNamespace);
}

const checkExceptionTargets: LintCheck = eachException((document, context) =>
  targetFindings(context, document, document.value.spec.target, ['spec', 'target']),
);

const checkIntentTargets: LintCheck = (context) =>
  context.intents.flatMap((document) => [
    ...targetFindings(context, document, document.value.spec, ['spec']),
    ...partFindings(context, document),
  ]);

function targetFindings(
  context: LintContext,
  document: Places & { readonly namespace: string },
  { group: name, zone }: { readonly group: string; readonly zone?: string | undefined },
  path: Path,
): readonly Finding[] {
  const group = groupOf(context, document.namespace, name);
  if (group === undefined) return [unknownGroup(context, document.place([...path, 'group']), name, [document.namespace])];
  if (group === 'unusable' || zone === undefined) return [];
  const zones = group.zones.map((one) => one.name);
  if (zones.includes(zone)) return [];
  const message = `the zone ${zone} does not exist in the group ${name}`;
  return [finding('RG2105', document.place([...path, 'zone']), message, { hint: suggestion(zone, zones) })];
}

function partFindings(context: LintContext, document: Loaded<'RolloutIntent'>): readonly Finding[] {
  const { group: name, wave, gate } = document.value.spec;
  const group = groupOf(context, document.namespace, name);
  if (group === undefined || group === 'unusable') return [];
  const related = group.sources[''] ? [group.sources['']] : [];
  const parts = [
    { code: 'RG2308', noun: 'wave', part: wave, known: group.rollout.waves },
    { code: 'RG2107', noun: 'gate', part: gate, known: group.gates },
  ] as const;
  return parts.flatMap(({ code, noun, part, known }) => {
    const names = known.map((one) => one.name);
    if (part === undefined || names.includes(part)) return [];
    const message = `the ${noun} ${part} does not exist in the group ${name}`;
    return [finding(code, document.place(['spec', noun]), message, { hint: suggestion(part, names), related })];
  });
}

export const exceptionChecks: readonly LintCheck[] = [
  findOverlappingExceptions,
  findExceptionsNeverInForce,
  findUnknownRules,
  findExceptionsWithoutEffect,
  checkExceptionTargets,
  checkIntentTargets,
];
