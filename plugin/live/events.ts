// Reads the events that this project writes about groups. By default the API server keeps an event for one hour.
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { Reflector } from '../../cluster/watch/reflector.ts';
import { type Reader, reader } from '../../engine/observe/raw.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import type { Cluster } from '../connection.ts';

export interface GroupEvent {
  readonly uid: string;
  /** Increases with each write. */
  readonly resourceVersion: string;
  readonly namespace: string;
  readonly atMs: number;
  readonly count: number;
  readonly type: string;
  readonly reason: string;
  readonly action: string;
  /** For example `statefulset/ingester-zone-a`. */
  readonly object: string;
  readonly note: string;
  readonly by: string;
  readonly request?: string;
}

/** The annotation in which the webhook stores the denied request. */
const requestAnnotation = 'rollout-group.dev/request';

export type EventSubject = Pick<PublishedDecision, 'namespace' | 'group'> & { readonly zones: readonly { readonly statefulSet: string }[] };

/** Returns a predicate for events about the group: its object, its StatefulSets or their pods. */
export function isAbout({ namespace, group, zones }: EventSubject): (event: GroupEvent) => boolean {
  const sets = new Set(zones.map(({ statefulSet }) => statefulSet));
  return (event) => {
    if (event.namespace !== namespace) return false;
    const [kind, name = ''] = event.object.split('/');
    if (kind === 'rolloutgroup') return name === group;
    if (kind === 'statefulset') return sets.has(name);
    return kind === 'pod' && sets.has(name.replace(/-\d+$/, ''));
  };
}

/** Lists the events that this project wrote, the oldest first; with `labelSelector`, only those that match. */
export async function listEvents(
  { env, timeoutMs }: Cluster,
  namespace: string | undefined,
  labelSelector?: string,
): Promise<readonly GroupEvent[]> {
  const { items } = await listObjects(env, resources.events, { namespace, labelSelector, site: 'live.events', timeoutMs });
  return items.flatMap(eventView).sort(byTime);
}

/** Orders events by time. Events of one turn have the same time and are ordered by their writes. */
function byTime(a: GroupEvent, b: GroupEvent): number {
  return a.atMs - b.atMs || a.resourceVersion.localeCompare(b.resourceVersion, 'en', { numeric: true });
}

/** Calls `onEvent` with each existing, new or repeated event. Returns a function that stops the watch. */
export function watchEvents({ env }: Cluster, namespace: string | undefined, onEvent: (event: GroupEvent) => void): () => void {
  const reflector = new Reflector<readonly GroupEvent[]>({
    env,
    resource: resources.events,
    ...(namespace === undefined ? {} : { namespace }),
    project: eventView,
    onChange: ({ kind, view = [] }) => {
      if (kind !== 'deleted') for (const event of view) onEvent(event);
    },
    site: 'live.events',
  });
  return () => reflector.stop();
}

function eventView(object: KubernetesObject): readonly GroupEvent[] {
  const fields = reader(object);
  const by = fields.text('reportingController') ?? fields.text('deprecatedSource.component') ?? '';
  if (!by.startsWith('rollout-group')) return [];
  const regarding = `${(fields.text('regarding.kind') ?? '').toLowerCase()}/${fields.text('regarding.name') ?? ''}`;
  const request = object.metadata.annotations?.[requestAnnotation];
  return [
    {
      uid: object.metadata.uid ?? '',
      resourceVersion: object.metadata.resourceVersion ?? '',
      namespace: object.metadata.namespace ?? '',
      atMs: instantOf(fields),
      count: fields.whole('series.count') ?? fields.whole('deprecatedCount') ?? 1,
      type: fields.text('type') ?? 'Normal',
      reason: fields.text('reason') ?? '',
      action: fields.text('action') ?? '',
      object: regarding,
      note: fields.text('note') ?? '',
      by,
      ...(typeof request === 'string' ? { request } : {}),
    },
  ];
}

function instantOf(fields: Reader): number {
  const last = fields.instant('series.lastObservedTime') ?? fields.instant('deprecatedLastTimestamp');
  return last ?? fields.instant('eventTime') ?? fields.instant('metadata.creationTimestamp') ?? 0;
}
