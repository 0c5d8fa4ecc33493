// What people ask for: approve, reject, pause, retry, resume.
import type { IntentView } from '../../../engine/snapshot.ts';
import { type Command, type Commands, duration } from '../command.ts';
import { namespace, nowMs, policiesNow, type Stage } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const peopleCommands: Commands = {
  /** `approve wave=rest as=alice groups=oncall`; `anonymous` when no webhook stamped it. */
  approve: (stage, call) => ask(stage, call, 'approve'),
  reject: (stage, call) => ask(stage, call, 'reject'),
  /** `pause zone=b as=alice for=1h reason="disk swap"`. */
  pause: (stage, call) => ask(stage, call, 'pause'),
  retry: (stage, call) => ask(stage, call, 'retry'),
  /** Every pause ends. */
  resume: (stage) => {
    stage.intents = stage.intents.filter(({ action }) => action !== 'pause');
    return [];
  },
};

function ask(stage: Stage, call: Call, action: IntentView['action']): ReturnType<Command> {
  const { as: user = 'somebody', groups = '', for: validFor, group } = call.options;
  const about = (['zone', 'wave', 'rule', 'reason'] as const).flatMap((key) => {
    const text = call.options[key];
    return text === undefined ? [] : [[key, text] as const];
  });
  const intent: IntentView = {
    namespace,
    name: `${action}-${stage.intents.length + 1}`,
    group: group ?? policiesNow(stage).groups[0]?.name ?? '',
    action,
    ...Object.fromEntries(about),
    ...(validFor === undefined ? {} : { expiresMs: nowMs(stage) + duration(validFor) }),
    ...(call.words.includes('anonymous') ? {} : { requestedBy: { user, groups: groups.split(','), atMs: nowMs(stage) } }),
  };
  stage.intents = [...stage.intents, intent];
  return [];
}
