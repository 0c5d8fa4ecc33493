import { describe, expect, it } from 'vitest';
import type { Hold, RunFacts } from '../../../engine/notify/facts.ts';
import {
  channelNotes,
  done,
  emptyNotes,
  type Notes,
  noted,
  notesLimits,
  type Observation,
  sending,
  withChannel,
  withProblem,
} from '../../../engine/notify/notes.ts';
import { decodeNotes, encodeNotes, notesByteLimit } from '../../../engine/notify/notes-document.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import { type RunFields, runOf } from '../../kit/questions.ts';

const group = { namespace: 'mimir', group: 'ingester' };
const approval: Hold = { rule: 'approval', fact: 'wave rest has 0 of 1 approvals' };

function run(id: string, more: RunFields = {}): RunState {
  return runOf({
    id,
    kind: 'rollout',
    target: { a: id, b: id },
    previous: { a: 'old', b: 'old' },
    startedMs: Number(id.slice(1)) * 1000,
    wave: 0,
    waveStartedMs: 0,
    lastDisruptionMs: Number(id.slice(1)) * 1000,
    movableMs: 0,
    movableAsOfMs: 0,
    isMovable: true,
    ...more,
  });
}

/** The first run of the change of a later run. */
const joined = { id: 'r1', startedMs: 1000 };

interface Look extends RunFields {
  readonly id: string;
  readonly lasting?: Hold;
  readonly place?: number;
  readonly events?: Observation['notify'][number]['events'];
}

function look({ id, lasting, place = 1, events = ['started', 'waiting', 'failed', 'completed'], ...more }: Look): Observation {
  const facts: RunFacts = {
    ...group,
    run: run(id, more),
    goal: 'all new',
    percent: 0,
    pods: 6,
    updated: 0,
    available: 6,
    zones: [],
    isPatient: false,
    wave: { name: `w${place}`, place, count: 3 },
  };
  return { facts, atMs: 9_000_000, notify: [{ channel: 'sre', events }], ...(lasting === undefined ? {} : { lasting }) };
}

function notesAfter(...looks: readonly Look[]): Notes {
  return looks.map(look).reduce(noted, emptyNotes('mimir', 'ingester'));
}

function told({ runs }: Notes): readonly string[] {
  return runs.flatMap(({ id, events }) => events.map(({ kind }) => `${id} ${kind}`));
}

const over = { outcome: 'completed', completedMs: 5000 } as const;
const lost = { outcome: 'failed', failedMs: 4000, failure: 'gate errors: 0.7' } as const;

describe('notes', () => {
  it.each<[string, readonly Look[], readonly string[]]>([
    ['of a run that was over before anybody looked', [{ id: 'r1', ...over }], []],
    ['of a run that is found under way', [{ id: 'r1' }, { id: 'r1' }], ['r1 started']],
    [
      'of a run from its beginning to its end',
      [{ id: 'r1' }, { id: 'r1', ...over }, { id: 'r1', ...over }],
      ['r1 started', 'r1 completed'],
    ],
    [
      'of a run that was observed only at its beginning and its end',
      [
        { id: 'r1', ...over },
        { id: 'r2', ...over },
      ],
      ['r2 started', 'r2 completed'],
    ],
    ['of a run that failed', [{ id: 'r1' }, { id: 'r1', ...lost }, { id: 'r1', ...lost }], ['r1 started', 'r1 failed']],
    [
      'of a failed run that goes on and fails again, and is complete in the end',
      [{ id: 'r1' }, { id: 'r1', ...lost }, { id: 'r1' }, { id: 'r1', ...lost, failedMs: 6000 }, { id: 'r1' }, { id: 'r1', ...over }],
      ['r1 started', 'r1 failed', 'r1 failed', 'r1 completed'],
    ],
    ['of a run that another one follows', [{ id: 'r1' }, { id: 'r2' }], ['r1 started', 'r1 superseded', 'r2 started']],
    [
      'of a failed run that another one follows',
      [{ id: 'r1' }, { id: 'r1', ...lost }, { id: 'r2' }],
      ['r1 started', 'r1 failed', 'r2 started'],
    ],
    [
      'of a run that more zones join',
      [
        { id: 'r1', target: { a: 'new', b: 'old' } },
        { id: 'r2', target: { a: 'new', b: 'new' }, joined },
        { id: 'r2', target: { a: 'new', b: 'new' }, joined, ...over },
      ],
      ['r2 started', 'r2 completed'],
    ],
    ['of a run whose target changes before it replaced a pod', [{ id: 'r1' }, { id: 'r2', joined }], ['r2 started']],
    ['of a look that is older than the last one', [{ id: 'r2' }, { id: 'r1' }, { id: 'r2' }], ['r2 started']],
    [
      'of waits: once for each rule and wave',
      [{ id: 'r1' }, { id: 'r1', lasting: approval }, { id: 'r1', lasting: approval }, { id: 'r1', lasting: approval, place: 2 }],
      ['r1 started', 'r1 waiting', 'r1 waiting'],
    ],
    [
      'of an event that no channel requests',
      [
        { id: 'r1', events: ['failed'] },
        { id: 'r1', events: ['failed'], ...over },
      ],
      [],
    ],
    [
      'of an end for who is told of ends',
      [
        { id: 'r1', events: ['completed'] },
        { id: 'r2', events: ['completed'] },
      ],
      ['r1 superseded'],
    ],
  ])('%s', (_what, looks, expected) => {
    expect(told(notesAfter(...looks))).toEqual(expected);
  });

  it('have the same ids in every process, and other ids for other groups', () => {
    const ids = ({ runs }: Notes) => runs.flatMap(({ events }) => events.map(({ id }) => id));
    const looks: readonly Look[] = [{ id: 'r1' }, { id: 'r1', lasting: approval }, { id: 'r1', ...over }];
    expect(ids(notesAfter(...looks))).toEqual(ids(notesAfter(looks[0] ?? { id: '' }, ...looks)));
    expect(new Set(ids(notesAfter(...looks))).size).toBe(3);
  });

  it('are the same value without news, so they are not written', () => {
    const notes = notesAfter({ id: 'r1' }, { id: 'r1', lasting: approval });
    expect(noted(notes, look({ id: 'r1' }))).toBe(notes);
    expect(noted(notes, look({ id: 'r1', lasting: approval }))).toBe(notes);
  });

  it('are bounded in runs', () => {
    const notes = notesAfter(...Array.from({ length: 10 }, (_, index) => ({ id: `r${index + 1}` })));
    expect(notes.runs.map(({ id }) => id)).toEqual(['r8', 'r9', 'r10']);
    expect(notes.runs).toHaveLength(notesLimits.runs);
  });
});

describe('notes on a channel', () => {
  const notes = notesAfter({ id: 'r1' });

  it('follow a message from its mark to its arrival', () => {
    const marked = withChannel(notes, 'r1', 'sre', (known) => sending(known, 'main', 'agent-1/1', 5));
    const sent = withChannel(marked, 'r1', 'sre', (known) => done(known, 'main', { handle: '17.1' }));
    const [one] = sent.runs;
    expect(one && channelNotes(one, 'sre')).toEqual({ done: ['main'], handles: { main: '17.1' } });
    // Whoever is late changes nothing.
    expect(withChannel(sent, 'r1', 'sre', (known) => sending(known, 'main', 'agent-2/1', 6))).toBe(sent);
    expect(withChannel(sent, 'r1', 'sre', (known) => done(known, 'main', { handle: '18.1' }))).toBe(sent);
    expect(withChannel(sent, 'gone', 'sre', (known) => done(known, 'x', {}))).toBe(sent);
  });

  it('keep the marks of other messages', () => {
    const both = ['a', 'b'].reduce((now, key) => withChannel(now, 'r1', 'sre', (known) => sending(known, key, 'agent-1', 5)), notes);
    const [one] = withChannel(both, 'r1', 'sre', (known) => done(known, 'b', {})).runs;
    expect(one && channelNotes(one, 'sre').sending).toEqual({ a: { by: 'agent-1', atMs: 5 } });
  });

  it('contain the start of a failure until it ends', () => {
    const first = withProblem(notes, 'sre', 'no token', 5);
    const second = withProblem(first, 'sre', 'no channel', 9);
    expect(second.problems).toEqual({ sre: { text: 'no channel', sinceMs: 5 } });
    expect(withProblem(second, 'sre', 'no channel', 11)).toBe(second);
    expect(withProblem(second, 'sre', undefined, 12).problems).toEqual({});
  });
});

describe('notes as text', () => {
  const full = withProblem(
    withChannel(notesAfter({ id: 'r1' }, { id: 'r1', lasting: approval }, { id: 'r1', ...lost }), 'r1', 'sre', (known) =>
      sending(done(known, 'main', { handle: '17.1', refused: 'why' }), 'page-1', 'agent-1/2', 7),
    ),
    'sre',
    'no channel',
    5,
  );

  it('are the same after writing and reading, with the same bytes', () => {
    const text = encodeNotes(full);
    if (isUnknown(text)) throw new Error(text.unknown);
    const read = decodeNotes(text, group);
    expect(read).toEqual(full);
    expect(isUnknown(read) ? read : encodeNotes(read)).toBe(text);
    expect(decodeNotes(undefined, group)).toEqual(emptyNotes('mimir', 'ingester'));
  });

  it.each<[string, string]>([
    ['no JSON', '{'],
    ['another format', '{"format":"2","namespace":"mimir","group":"ingester","runs":[]}'],
    ['of another group', '{"format":"1","namespace":"mimir","group":"other","runs":[]}'],
    ['with a name that means something', '{"format":"1","namespace":"mimir","group":"ingester","runs":[],"__proto__":{}}'],
    ['too long', ' '.repeat(notesByteLimit + 1)],
    ['with numbers that are none', '{"format":"1","namespace":"mimir","group":"ingester","runs":[{"startedMs":"x"}]}'],
  ])('%s are rejected', (_what, text) => {
    expect(isUnknown(decodeNotes(text, group))).toBe(true);
  });

  it('that are too long lose their oldest runs', () => {
    const zones = Object.fromEntries(Array.from({ length: 50 }, (_, zone) => [`zone-${zone}`.padEnd(250, 'z'), 'r'.repeat(250)]));
    const handles = Object.fromEntries(Array.from({ length: 3000 }, (_, page) => [`page-${page}`, '1772452830.050000']));
    const long: Notes = {
      ...full,
      runs: ['r1', 'r2', 'r3'].flatMap((id) =>
        full.runs.map((one) => ({ ...one, id, key: id, target: zones, previous: zones, channels: { sre: { done: [], handles } } })),
      ),
    };
    const text = encodeNotes(long);
    const read = isUnknown(text) ? text : decodeNotes(text, group);
    expect(isUnknown(read) ? read : read.runs.map(({ id }) => id)).toEqual(['r3']);
  });
});
