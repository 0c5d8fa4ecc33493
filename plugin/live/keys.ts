// Handles the keys of a live screen as a state machine that sends no request, and renders the key bar.
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { shorten } from '../../policies/text/shorten.ts';
import type { TableLook } from '../output/plan/table.ts';
import { paragraph } from '../output/text.ts';
import type { Key } from './keyboard.ts';

type KeyVerb = 'pause' | 'resume' | 'approve';

export interface KeyCommand {
  readonly verb: KeyVerb;
  /** As `NAMESPACE/NAME`. */
  readonly group: string;
  readonly zone?: string;
  /** The wave, or else the rule, that waited for an approval when the user pressed `a`. */
  readonly wave?: string;
  readonly rule?: string;
}

export interface KeyState {
  /** `first` is the view of the verb, `second` the other view. */
  readonly view: 'first' | 'second' | 'explain' | 'help';
  /** The only zone that is shown; absent for all zones. */
  readonly zone?: string;
  /** The command that waits for the key `y`. */
  readonly asked?: KeyCommand;
  readonly sent?: KeyCommand;
  readonly message?: string;
}

type KeyEffect = 'quit' | 'interrupt' | 'suspend' | KeyCommand;

interface Pressed {
  readonly state: KeyState;
  readonly effect?: KeyEffect;
}

/** Returns the state after a key. A shown command runs only after `y`. On a screen of several groups, only q, Ctrl-C and Ctrl-Z work. */
export function press(state: KeyState, key: Key, decision: PublishedDecision | undefined): Pressed {
  const { asked, message: _message, ...rest } = state;
  if (key === 'interrupt' || key === 'suspend') return { state, effect: key };
  if (decision === undefined) return key === 'q' ? { state, effect: 'quit' } : { state };
  if (state.sent !== undefined) return { state };
  if (asked !== undefined) {
    if (key !== 'y' && key !== 'Y') return { state: { ...rest, message: 'nothing was changed' } };
    return { state: { ...rest, sent: asked }, effect: asked };
  }
  const verb = keyVerbs[key];
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

export function answered(state: KeyState, message: string): KeyState {
  const { sent: _sent, ...rest } = state;
  return { ...rest, message };
}

const keyVerbs: Readonly<Record<Key, KeyVerb>> = { p: 'pause', r: 'resume', a: 'approve' };

function toggled(state: KeyState, view: KeyState['view']): KeyState {
  return { ...state, view: state.view === view ? 'first' : view };
}

/** Returns the state with the command to confirm, or with the reason why no command can be confirmed. */
function askFor(state: KeyState, verb: KeyVerb, decision: PublishedDecision): KeyState {
  const group = `${decision.namespace}/${decision.group}`;
  if (verb !== 'approve') return { ...state, asked: { verb, group, ...(state.zone === undefined ? {} : { zone: state.zone }) } };
  const [only, ...others] = approvable(decision);
  if (only === undefined) return { ...state, message: 'no wave or rule waits for an approval' };
  if (others.length === 0) return { ...state, asked: { verb, group, ...only } };
  return {
    ...state,
    message: `more than one approval is missing; name one: kubectl rollout-group approve ${group} --wave NAME or --rule NAME`,
  };
}

/** Returns the approvals that the group waits for: waves by name, rules of policies by rule name. */
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

export function commandText({ verb, group, zone, wave, rule }: KeyCommand): string {
  const flags = Object.entries({ zone, wave, rule }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`]));
  return ['kubectl rollout-group', verb, group, ...flags].join(' ');
}

/** The view that the key `d` opens. */
export type OtherView = 'details' | 'summary';

/** Returns the selected zone and the message, if any, then the question or the keys. */
export function keyBar(state: KeyState, other: OtherView, look: TableLook): readonly string[] {
  const zone = state.zone === undefined ? [] : [`only zone ${state.zone}; tab: next zone, esc: all zones`];
  const message = state.message === undefined ? [] : paragraph('', state.message, look.columns).slice(0, 2);
  const question = questionLines(state, look);
  return [...zone, ...message, ...(question.length > 0 ? question : [look.paint('dim', keysLine(other, look))])];
}

function questionLines({ asked, sent }: KeyState, { paint, columns }: TableLook): readonly string[] {
  if (sent !== undefined) return paragraph('', `${commandText(sent)} ...`, columns);
  if (asked === undefined) return [];
  return paragraph('', `${commandText(asked)}   press y to run this, any other key to cancel`, columns).map((line) =>
    paint('yellow', line),
  );
}

function keysLine(other: OtherView, { columns, glyphs }: TableLook): string {
  const line = `q quit  d ${other}  e explain  p pause  r resume  a approve  tab zone  ? help`;
  return columns === undefined ? line : shorten(line, columns, glyphs.ellipsis);
}

export function helpLines(other: OtherView): readonly string[] {
  return [
    'keys',
    '  q       quit; the rollout continues (also Ctrl-C)',
    `  d       show or hide ${other}`,
    '  e       show or hide the explanation, rule by rule',
    '  p       pause the group or the selected zone',
    '  r       resume the group or the selected zone',
    '  a       approve the wave or rule that waits for approval',
    '  tab     select the next zone; after the last one, all zones',
    '  esc     return to the first view',
    'p, r and a show the command first and run it only after y.',
  ];
}
