// Records the events of one group's runs for the notifier in a ConfigMap, the notes of the group. No action waits for this write.

import { pauseAfter } from '../../cluster/request/backoff.ts';
import { dataText, type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import type { LiveRun } from '../../engine/notify/deliveries.ts';
import { podLines, type RunFacts, runFacts } from '../../engine/notify/facts.ts';
import { type Notes, noted, notesLimits, type Observation } from '../../engine/notify/notes.ts';
import { decodeNotes, encodeNotes, notesByteLimit, notesKey, notesLabelValue, notesName } from '../../engine/notify/notes-document.ts';
import { podsPerPage } from '../../engine/notify/texts.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { NotifyDefinition } from '../../policies/definition.ts';
import type { AgentEnv } from '../env.ts';
import type { TurnReport } from '../report.ts';

/** The time after which a rule that blocks a run is reported. */
const lastingMs = 60_000;
/** Replaces `lastingMs` for a wait that should end without a person. Each pod that becomes updated or available restarts this time. */
const stuckMs = 600_000;
/** The most observations that wait to be stored. The oldest are dropped first. */
const maxPending = 20;
const pauses = { firstMs: 1_000, lastMs: 60_000 };

interface GroupNotifierOptions {
  readonly env: AgentEnv;
  readonly stored: SharedObject<Notes>;
  readonly namespace: string;
  readonly name: string;
  /** Called when observations were stored, and when an observation does not change the stored notes. */
  readonly onNotes: () => void;
  readonly onFailure: (error: unknown) => void;
}

export class GroupNotifier {
  readonly namespace: string;
  readonly name: string;
  readonly #options: GroupNotifierOptions;
  #notify: readonly NotifyDefinition[] = [];
  #report: TurnReport | undefined;
  #facts: RunFacts | undefined;
  #live: LiveRun | undefined;
  #notes: Notes | undefined;
  readonly #pending: Observation[] = [];
  #storing: Promise<void> | undefined;
  #failures = 0;
  #cancelRetry = (): void => undefined;
  #lasting: { readonly key: string; readonly cancel: () => void } | undefined;
  #isClosed = false;

  constructor(options: GroupNotifierOptions) {
    this.#options = options;
    this.namespace = options.namespace;
    this.name = options.name;
  }

  /** The stored notes as last read or written; undefined before the first read. */
  get notes(): Notes | undefined {
    return this.#notes;
  }

  get channels(): readonly string[] {
    return [...new Set(this.#notify.map(({ channel }) => channel))];
  }

  /** Returns the current state; undefined before the first turn with a run. */
  live(): LiveRun | undefined {
    if (this.#facts === undefined || this.#report === undefined) return undefined;
    this.#live ??= { facts: this.#facts, pods: podLines(this.#report, notesLimits.pages * podsPerPage) };
    return this.#live;
  }

  noteTurn(report: TurnReport): void {
    const { decision, group, snapshot } = report;
    if (decision === undefined) return;
    this.#notify = group.notify ?? [];
    const facts = runFacts({ group, snapshot, decision });
    if (facts === undefined) return;
    this.#report = report;
    this.#facts = facts;
    this.#live = undefined;
    this.#watchBlock(facts);
    this.#observe({ facts, notify: this.#notify, atMs: this.#options.env.clock.nowMs() });
  }

  /** Changes the stored notes. Rejects as an update of `sharedNotes` does. */
  async change(change: (notes: Notes) => Notes): Promise<Notes> {
    this.#notes = (await this.#options.stored.update(change)).value;
    return this.#notes;
  }

  /** Stops the recording. If `isLast` is true, pending observations are still stored. */
  async close(isLast: boolean): Promise<void> {
    this.#isClosed = true;
    this.#lasting?.cancel();
    this.#cancelRetry();
    if (!isLast) this.#pending.splice(0);
    await this.#storing;
    if (isLast && this.#pending.length > 0) await this.#store().catch(this.#options.onFailure);
  }

  /** Starts a timer. If the same rule still blocks when the timer ends, the rule is reported. A rule with a known end is not reported. */
  #watchBlock({ hold, inFlight, isPatient, run, wave, updated, available }: RunFacts): void {
    const blocker = hold ?? inFlight;
    const isNews = blocker !== undefined && blocker.untilMs === undefined && run.outcome === 'running';
    const moving = isPatient ? `${updated} ${available}` : '';
    const key = isNews ? `${run.id} ${blocker.rule} ${wave?.place ?? ''} ${moving}` : undefined;
    if (this.#lasting?.key === key) return;
    this.#lasting?.cancel();
    this.#lasting = undefined;
    if (key === undefined) return;
    const cancel = this.#options.env.timers.after(isPatient ? stuckMs : lastingMs, () => {
      const facts = this.#facts;
      const lasting = facts?.hold ?? facts?.inFlight;
      if (this.#isClosed || facts === undefined || lasting === undefined || this.#lasting?.key !== key) return;
      this.#observe({ facts, notify: this.#notify, atMs: this.#options.env.clock.nowMs(), lasting });
    });
    this.#lasting = { key, cancel };
  }

  #observe(seen: Observation): void {
    if (this.#isClosed) return;
    if (this.#notes !== undefined && this.#pending.length === 0 && noted(this.#notes, seen) === this.#notes) {
      this.#options.onNotes();
      return;
    }
    const before = this.#pending.findIndex((one) => one.lasting === undefined && isSameState(one.facts, seen.facts));
    if (before >= 0) this.#pending.splice(before, 1);
    if (this.#pending.length >= maxPending) this.#pending.shift();
    this.#pending.push(seen);
    this.#storeSoon();
  }

  #storeSoon(): void {
    this.#storing ??= this.#store()
      .then(
        () => {
          this.#failures = 0;
          if (!this.#isClosed) this.#options.onNotes();
        },
        (error: unknown) => {
          this.#failures += 1;
          this.#options.onFailure(error);
        },
      )
      .finally(() => {
        this.#storing = undefined;
        if (this.#pending.length === 0 || this.#isClosed) return;
        this.#cancelRetry();
        const { timers, random } = this.#options.env;
        const pauseMs = this.#failures === 0 ? 0 : pauseAfter(this.#failures, pauses, random());
        this.#cancelRetry = timers.after(pauseMs, () => this.#storeSoon());
      });
  }

  async #store(): Promise<void> {
    this.#notes ??= (await this.#options.stored.read()).value;
    const observations = [...this.#pending];
    const isNews = observations.reduce(noted, this.#notes) !== this.#notes;
    if (isNews) await this.change((notes) => observations.reduce(noted, notes));
    for (const observation of observations) {
      const index = this.#pending.indexOf(observation);
      if (index >= 0) this.#pending.splice(index, 1);
    }
  }
}

/** Returns whether the later observation replaces the earlier one because no reported event happened between them. */
function isSameState(a: RunFacts, b: RunFacts): boolean {
  const failedMs = ({ run }: RunFacts) => (run.outcome === 'failed' ? run.failedMs : undefined);
  return a.run.id === b.run.id && a.run.outcome === b.run.outcome && failedMs(a) === failedMs(b);
}

/** The error for a ConfigMap that the agent does not manage, and for notes with an unknown format or above the size limit. */
class NotesUnusable extends Error {
  override readonly name = 'NotesUnusable';
}

interface NotesOptions {
  readonly env: AgentEnv;
  readonly timeoutMs: number;
  readonly mayWrite: () => boolean;
}

/** Returns the notes. `read` and `update` reject with NotesUnusable, ApiFailure or TransportFailure; `update` also with WriteRefused. */
export function sharedNotes(options: NotesOptions, namespace: string, group: string): SharedObject<Notes> {
  return new SharedObject<Notes>({
    ...options,
    resource: resources.configMaps,
    namespace,
    name: notesName(group),
    site: 'notify.notes',
    decode: (object) => decode(object, { namespace, group }),
    encode,
    // Leaves room for labels, annotations, and the escapes of JSON inside JSON.
    maxBytes: 3 * notesByteLimit,
  });
}

function decode(object: KubernetesObject | undefined, identity: { readonly namespace: string; readonly group: string }): Notes {
  if (object !== undefined && object.metadata.labels?.[ledgerLabel.key] !== notesLabelValue) {
    throw new NotesUnusable(`ConfigMap ${identity.namespace}/${notesName(identity.group)} is not managed by the agent`);
  }
  const notes = decodeNotes(dataText(object, notesKey), identity);
  if (isUnknown(notes)) throw new NotesUnusable(notes.unknown);
  return notes;
}

function encode(notes: Notes, existing: KubernetesObject | undefined) {
  const text = encodeNotes(notes);
  if (isUnknown(text)) throw new NotesUnusable(text.unknown);
  const labels = { ...existing?.metadata.labels, [ledgerLabel.key]: notesLabelValue };
  return { metadata: { labels }, data: { [notesKey]: text } };
}
