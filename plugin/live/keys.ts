// What keys do on a live screen: which view it is, which zone, what is about to be asked, and when it is over. Pure; nothing is sent from here.
import type { PublishedDecision } from '../../engine/publish/published.ts';
import type { Key } from './keyboard.ts';

/** What can be asked from the screen: the verbs of these names. */
type KeyVerb = 'pause' | 'resume' | 'approve';

/** A command that a key stands for. */
export interface KeyCommand {
  readonly verb: KeyVerb;
  /** As `NAMESPACE/NAME`. */
  readonly group: string;
  readonly zone?: string;
  /** What is approved: what was on the screen when the key was pressed, whatever waits when the command arrives. */
  readonly wave?: string;
  readonly rule?: string;
}

export interface KeyState {
  /** `first` is what the verb shows, `second` what the other one does. */
  readonly view: 'first' | 'second' | 'explain' | 'help';
  /** The zone that is shown alone; absent for all. */
  readonly zone?: string;
  /** The command that waits for a yes. */
  readonly asked?: KeyCommand;
  /** The command that is being carried out. */
  readonly sent?: KeyCommand;
  /** What came of the last one. */
  readonly told?: string;
}

/** What is to be done besides. */
type KeyEffect = 'quit' | 'interrupt' | 'suspend' | KeyCommand;

interface Pressed {
  readonly state: KeyState;
  readonly effect?: KeyEffect;
}

/** The state after a key. Nothing but `y` right after the command was shown carries it out. Without a decision, of several groups, one can only leave. */
export function press(state: KeyState, key: Key, decision: PublishedDecision | undefined): Pressed {
  const { asked, told: _told, ...rest } = state;
  if (key === 'interrupt' || key === 'suspend') return { state, effect: key };
  if (decision === undefined) return key === 'q' ? { state, effect: 'quit' } : { state };
  if (state.sent !== undefined) return { state };
  if (asked !== undefined) {
    if (key !== 'y' && key !== 'Y') return { state: { ...rest, told: 'nothing was changed' } };
    return { state: { ...rest, sent: asked }, effect: asked };
  }
  const verb = verbOf(key);
  if (verb !== undefined) return { state: askFor(rest, verb, decision) };
  switch (key) {
    case 'q':
      return { state: rest, effect: 'quit' };
    case 'tab':
      return { state: withZone(rest, nextZone(rest, decision)) };
    case 'd':
      return { state: toggled(rest, 'second') };
    case 'e':
      return { state: toggled(rest, 'explain') };
    case '?':
    case 'h':
      return { state: toggled(rest, 'help') };
    case 'escape':
      return { state: { view: 'first' } };
    default:
      return { state: rest };
  }
}

/** The state when a command has ended. */
export function answered(state: KeyState, told: string): KeyState {
  const { sent: _sent, ...rest } = state;
  return { ...rest, told };
}

function verbOf(key: Key): KeyVerb | undefined {
  if (key === 'p') return 'pause';
  if (key === 'r') return 'resume';
  return key === 'a' ? 'approve' : undefined;
}

function toggled(state: KeyState, view: KeyState['view']): KeyState {
  return { ...state, view: state.view === view ? 'first' : view };
}

/** What cannot be asked now is said, and not asked. */
function askFor(state: KeyState, verb: KeyVerb, decision: PublishedDecision): KeyState {
  const group = `${decision.namespace}/${decision.group}`;
  if (verb !== 'approve') return { ...state, asked: { verb, group, ...(state.zone === undefined ? {} : { zone: state.zone }) } };
  const [only, ...others] = approvable(decision);
  if (only === undefined) return { ...state, told: 'nothing waits for an approval' };
  if (others.length === 0) return { ...state, asked: { verb, group, ...only } };
  return {
    ...state,
    told: `more than one approval is missing; name one: kubectl rollout-group approve ${group} --wave NAME or --rule NAME`,
  };
}

/** A wave is approved by its name, a rule of a policy, which says what it is that is approved, by its own. */
function approvable({ waits, wave }: PublishedDecision): readonly Pick<KeyCommand, 'wave' | 'rule'>[] {
  return waits.flatMap(({ rule, digest }): readonly Pick<KeyCommand, 'wave' | 'rule'>[] => {
    if (rule === 'approval') return wave === undefined ? [] : [{ wave: wave.name }];
    return digest === undefined ? [] : [{ rule }];
  });
}

function nextZone({ zone }: KeyState, { zones }: PublishedDecision): string | undefined {
  const names = zones.map((one) => one.zone);
  return zone === undefined ? names[0] : names[names.indexOf(zone) + 1];
}

function withZone(state: KeyState, zone: string | undefined): KeyState {
  const { zone: _zone, ...rest } = state;
  return zone === undefined ? rest : { ...rest, zone };
}

/** The command as a person types it. */
export function commandText({ verb, group, zone, wave, rule }: KeyCommand): string {
  const flags = Object.entries({ zone, wave, rule }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`]));
  return ['kubectl rollout-group', verb, group, ...flags].join(' ');
}
