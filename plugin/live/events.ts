// Events about groups: what the agent and this plugin wrote, as the API server keeps it for an hour or so.
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { startReflector } from '../../cluster/watch/reflector.ts';
import { type Reader, reader } from '../../engine/observe/raw.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import type { Cluster } from '../connection.ts';

export interface GroupEvent {
  readonly uid: string;
  /** Grows with each write. */
  readonly resourceVersion: string;
  readonly namespace: string;
  /** When it was last so. */
  readonly atMs: number;
  /** How often. */
  readonly count: number;
  readonly type: string;
  /** In PascalCase. */
  readonly reason: string;
  /** What was done, such as Evict. */
  readonly action: string;
  /** `statefulset/ingester-zone-a`. */
  readonly object: string;
  readonly note: string;
  readonly by: string;
  /** Of a denial: what was asked, as text. */
  readonly request?: string;
}

/** The annotation in which the webhook keeps it. */
const requestAnnotation = 'rollout-group.dev/request';

/** A group by what its events are about. */
export type EventSubject = Pick<PublishedDecision, 'namespace' | 'group'> & { readonly zones: readonly { readonly statefulSet: string }[] };

/** Whether an event is about the group: its object, its StatefulSets or their pods. */
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

/** Those of ours, the oldest first; of a label only when one is named. */
export async function listEvents(
  { env, timeoutMs }: Cluster,
  namespace: string | undefined,
  labelSelector?: string,
): Promise<readonly GroupEvent[]> {
  const where = { ...(namespace === undefined ? {} : { namespace }), ...(labelSelector === undefined ? {} : { labelSelector }) };
  const { items } = await listObjects(env, resources.events, { ...where, site: 'live.events', timeoutMs });
  return items.flatMap(eventView).sort(byTime);
}

/** Those of one turn have one instant, and were written in the order in which they came about. */
function byTime(a: GroupEvent, b: GroupEvent): number {
  return a.atMs - b.atMs || a.resourceVersion.localeCompare(b.resourceVersion, 'en', { numeric: true });
}

/** Calls back with each event that is there, is new, or happens again. The answer stops it. */
export function watchEvents({ env }: Cluster, namespace: string | undefined, onEvent: (event: GroupEvent) => void): () => void {
  const reflector = startReflector<readonly GroupEvent[]>({
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

/** Empty for events of others. */
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
