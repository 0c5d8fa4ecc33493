// What gates and metrics answer: reading, gate, metric.
import type { GateReading } from '../../../engine/snapshot.ts';
import { type Commands, word } from '../command.ts';
import { nowMs, type Stage } from '../stage.ts';
import type { Call } from '../transcript.ts';

export const evidenceCommands: Commands = {
  /** `reading gate=errors value=0.2`, or `no-data`, or `error`: one reading, now. */
  reading: (stage, call) => {
    const gate = call.options['gate'] ?? '';
    stage.readings.set(gate, [...(stage.readings.get(gate) ?? []), answerOf(stage, call)]);
    return [];
  },
  /** `gate errors answers value=0.2`: from now on, whenever it is read. `gate errors silent`: it is read no more. */
  gate: (stage, call) => {
    const gate = word(call, 0, 'a gate');
    if (word(call, 1, 'answers or silent') === 'silent') stage.gateAnswers.delete(gate);
    else stage.gateAnswers.set(gate, answerOf(stage, call));
    return [];
  },
  /** `metric stateful-safety/queue 250`, or `unknown`, or `silent`. */
  metric: (stage, call) => {
    const name = word(call, 0, 'policy/input');
    const value = word(call, 1, 'a value, unknown or silent');
    if (value === 'silent') stage.metrics.delete(name);
    else stage.metrics.set(name, value === 'unknown' ? { unknown: 'the query timed out' } : Number(value));
    return [];
  },
};

function answerOf(stage: Stage, call: Call): GateReading {
  const atMs = nowMs(stage);
  if (call.words.includes('no-data')) return { atMs, result: 'noData' };
  if (call.words.includes('error')) return { atMs, result: 'error', message: 'the query timed out' };
  return { atMs, result: 'value', value: Number(call.options['value']) };
}
