// What people ask for: approve, reject, promote, pause, abort, retry, undo, protect, resume.
import { digestOfRule, digestOfWaves } from '../../../engine/run/requests.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import { type Command, type Commands, duration, word } from '../command.ts';
import { ledgerOf, namespace, nowMs, policiesNow, type Stage } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const peopleCommands: Commands = {
  /** `approve wave=rest as=alice groups=oncall`; `anonymous` when no webhook stamped it. */
  approve: (stage, call) => ask(stage, call, 'approve'),
  reject: (stage, call) => ask(stage, call, 'reject'),
  /** `pause zone=b as=alice for=1h reason="disk swap"`. */
  pause: (stage, call) => ask(stage, call, 'pause'),
  retry: (stage, call) => ask(stage, call, 'retry'),
  /** `promote wave=canary gate=errors as=alice`. */
  promote: (stage, call) => ask(stage, call, 'promote'),
  /** Of the run under way. */
  abort: (stage, call) => ask(stage, call, 'abort'),
  /** `undo r2`: nobody gets that revision in any zone. */
  undo: (stage, call) => ask(stage, call, 'undo'),
  /** `protect zone=b ordinals=0,2 for=1h`. */
  protect: (stage, call) => ask(stage, call, 'protect'),
  /** `forget protect`: such words are taken back. */
  forget: (stage, call) => {
    stage.intents = stage.intents.filter(({ action }) => action !== call.words[0]);
    return [];
  },
  /** Every pause ends. */
  resume: (stage) => {
    stage.intents = stage.intents.filter(({ action }) => action !== 'pause');
    return [];
  },
};

function ask(stage: Stage, call: Call, action: IntentView['action']): ReturnType<Command> {
  const { as: user = 'somebody', groups = '', for: validFor, group } = call.options;
  const about = (['zone', 'wave', 'rule', 'gate', 'reason'] as const).flatMap((key) => {
    const text = call.options[key];
    return text === undefined ? [] : [[key, text] as const];
  });
  const of = group ?? policiesNow(stage).groups[0]?.name ?? '';
  const digest = action === 'approve' ? digestNow(stage, of, call.options['rule']) : undefined;
  const intent: IntentView = {
    namespace,
    name: `${action}-${stage.intents.length + 1}`,
    group: of,
    action,
    ...Object.fromEntries(about),
    ...(digest === undefined ? {} : { digest }),
    ...(action === 'abort' ? { runId: ledgerOf(stage, of).run?.id ?? '' } : {}),
    ...(action === 'undo' ? { undone: undoneIn(stage, of, word(call, 0, 'a revision')) } : {}),
    ...(call.options['ordinals'] === undefined ? {} : { ordinals: call.options['ordinals'].split(',').map(Number) }),
    ...(validFor === undefined ? {} : { expiresMs: nowMs(stage) + duration(validFor) }),
    ...(call.words.includes('anonymous') ? {} : { requestedBy: { user, groups: groups.split(','), atMs: nowMs(stage) } }),
  };
  stage.intents = [...stage.intents, intent];
  return [];
}

/** Of what stands written now, as the verb writes it. */
function digestNow(stage: Stage, group: string, rule: string | undefined): string | undefined {
  const { groups, policies } = policiesNow(stage);
  if (rule === undefined) return groups.filter(({ name }) => name === group).map(digestOfWaves)[0];
  const rules = policies.flatMap((policy) => policy.rules.map((one) => ({ id: `${policy.name}/${one.name}`, policy, one })));
  return rules.filter(({ id }) => id === rule).map(({ policy, one }) => digestOfRule(policy, one))[0];
}

function undoneIn(stage: Stage, group: string, revision: string): NonNullable<IntentView['undone']> {
  const zones = policiesNow(stage).groups.find(({ name }) => name === group)?.zones ?? [];
  return zones.map(({ name }) => ({ zone: name, revision }));
}
