import { describe, expect, it } from 'vitest';
import { classOfEvent, type ScenarioEvent } from '../../simulation/scenario.ts';
import { eventText } from '../../simulation/timeline-text.ts';
import { createTrace } from '../../simulation/trace.ts';

describe('the trace of a run', () => {
  it('is the same for the same things in the same order', () => {
    const hashes = [1, 2].map(() => {
      const trace = createTrace();
      for (let index = 0; index < 5000; index += 1) trace.note(index, 'commit', index, 'pods');
      return trace.hash();
    });
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).toMatch(/^[0-9a-f]{32}$/);
  });

  it('differs when anything differs: an instant, a part, the order, where one part ends', () => {
    const of = (...notes: readonly (readonly [number, ...string[]])[]): string => {
      const trace = createTrace();
      for (const [atMs, ...parts] of notes) trace.note(atMs, ...parts);
      return trace.hash();
    };
    const hashes = [
      of([1, 'a', 'bc']),
      of([2, 'a', 'bc']),
      of([1, 'ab', 'c']),
      of([1, 'a'], [1, 'bc']),
      of([1, 'bc'], [1, 'a']),
      of([1, 'a', 'bc'], [1]),
      of(),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it('can be asked in between without being changed by it', () => {
    const [asked, other] = [createTrace(), createTrace()];
    asked.note(1, 'a');
    expect(asked.hash()).toBe(asked.hash());
    asked.note(2, 'b');
    other.note(1, 'a');
    other.note(2, 'b');
    expect(asked.hash()).toBe(other.hash());
  });
});

describe('the class of an event', () => {
  const roll: ScenarioEvent = { atMs: 1, kind: 'setImage', image: 'app:2' };
  const scale: ScenarioEvent = { atMs: 2, kind: 'setReplicas', replicas: 2 };

  it('counts a change of mind, and not what people have the tool for', () => {
    expect(classOfEvent(roll, [])).toBeUndefined();
    expect(classOfEvent(roll, [scale])).toBeUndefined();
    expect(classOfEvent(roll, [roll])).toBe('F18');
    expect(classOfEvent(scale, [roll])).toBeUndefined();
    expect(classOfEvent(scale, [scale])).toBe('F17');
    expect(classOfEvent({ atMs: 3, kind: 'pause' }, [])).toBeUndefined();
  });

  it('is that of the catalogue for accidents', () => {
    expect(classOfEvent({ atMs: 3, kind: 'nodeLost', zone: 'a', forMs: 1 }, [])).toBe('F15');
    expect(classOfEvent({ atMs: 3, kind: 'editLease' }, [])).toBe('F13');
  });

  it('is told with its parameters', () => {
    expect(eventText({ atMs: 3, kind: 'setImage', image: 'app:2', zones: ['a', 'b'] })).toBe('setImage image=app:2 zones=["a","b"]');
    expect(eventText({ atMs: 3, kind: 'crash', process: 'b', restartAfterMs: 500 })).toBe('crash process=b restartAfterMs=500');
  });
});
