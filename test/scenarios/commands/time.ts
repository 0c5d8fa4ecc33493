// Commands about time: clock, advance.
import { type Commands, duration, word } from '../command.ts';
import { instant } from '../print.ts';
import { changeSnapshot, letTimePass, nowMs } from '../stage.ts';

export const timeCommands: Commands = {
  /** `clock 2026-03-06T16:30:00Z`: when the scenario begins; pods have been as they are for long. */
  clock: (stage, call) => {
    const at = Date.parse(word(call, 0, 'an instant'));
    if (Number.isNaN(at) || at < nowMs(stage)) throw new Error('the clock goes forward only');
    changeSnapshot(stage, { nowMs: at });
    return [instant(at)];
  },
  /** `advance 5m`: time passes while no agent looks. */
  advance: (stage, call) => {
    letTimePass(stage, nowMs(stage) + duration(word(call, 0, 'a duration')));
    return [instant(nowMs(stage))];
  },
};
