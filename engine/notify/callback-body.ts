// Builds the JSON body of a callback for an event. The same event gives the same bytes in every attempt.

import { instantText } from '../../policies/instant.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { NotedEvent, RunNotes } from './notes.ts';
import { cut, eventSentence, type GroupName, holdText } from './words.ts';

/** Version of the shape; a field may be added under the same one. */
const callbackFormat = 'rollout-group.dev/notification/v1';

/** The body of the POST. */
export function callbackBody({ namespace, group }: GroupName, run: RunNotes, event: NotedEvent): string {
  const { percent, pods, updated, available, wave } = event.progress;
  return canonicalJson({
    format: callbackFormat,
    id: event.id,
    event: event.kind,
    at: instantText(event.atMs),
    group: { namespace, name: group },
    run: { id: run.key, kind: run.kind, startedAt: instantText(run.startedMs), commit: run.commit, cause: run.cause },
    // An event that ends nothing means that the run continues.
    result: event.kind === 'started' || event.kind === 'waiting' ? 'running' : event.kind,
    reason: cut(reasonOf(run, event), 600),
    rule: event.hold?.rule,
    percent,
    counts: { pods, updated, available },
    wave: wave === undefined ? undefined : { name: wave.name, place: wave.place, count: wave.count },
  });
}

function reasonOf(run: RunNotes, event: NotedEvent): string {
  return event.failure ?? (event.hold === undefined ? eventSentence(run, event) : holdText(event.hold));
}

/** Returns the signed text: the time (Unix seconds) and the body, so that a signature is invalid at another time. */
export function signedText(timestamp: string, body: string): string {
  return `${timestamp}.${body}`;
}
