// The status of the commit that is rolled out, as GitHub and GitLab take it: states, limits of texts, and which commits can have one.
import type { NotedEvent, RunNotes } from './notes.ts';
import { cut, eventSentence, type GroupName } from './words.ts';

export interface CommitStatus {
  readonly sha: string;
  readonly state: string;
  /** Statuses of one name take each other's place. */
  readonly name: string;
  readonly description: string;
}

/** Limits of a service. */
interface Service {
  readonly states: Readonly<Record<NotedEvent['kind'], string>>;
  readonly longestDescription: number;
  readonly longestName: number;
}

/** https://docs.github.com/en/rest/commits/statuses: error, failure, pending, success; 140 characters. */
const github: Service = {
  states: { started: 'pending', waiting: 'pending', failed: 'failure', completed: 'success', superseded: 'error' },
  longestDescription: 140,
  longestName: 255,
};

/** https://docs.gitlab.com/api/commits/#set-commit-pipeline-status: pending, running, success, failed, canceled, skipped; 255 characters. */
const gitlab: Service = {
  states: { started: 'running', waiting: 'running', failed: 'failed', completed: 'success', superseded: 'canceled' },
  longestDescription: 255,
  longestName: 255,
};

const services = { github, gitlab } as const;

/** A whole commit id, SHA-1 or SHA-256. A name of a branch, or a part of an id, may mean another commit tomorrow. */
const commitId = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** undefined when the run names no commit that a status can be given to. */
export function commitStatus(service: keyof typeof services, name: GroupName, run: RunNotes, event: NotedEvent): CommitStatus | undefined {
  const sha = run.commit?.trim().toLowerCase() ?? '';
  if (!commitId.test(sha)) return undefined;
  const { states, longestDescription, longestName } = services[service];
  const { percent } = event.progress;
  const ends = event.kind === 'completed' ? '' : `${percent} %, `;
  return {
    sha,
    state: states[event.kind],
    name: cut(`rollout-group/${name.namespace}/${name.group}`, longestName),
    description: cut(`${ends}${eventSentence(run, event)}`.replace(/\s+/g, ' '), longestDescription),
  };
}
