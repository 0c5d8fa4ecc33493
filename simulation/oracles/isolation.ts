// Judges isolation (L7): what agents and webhooks do for one group concerns no other group.
import type { TurnReport } from '../../agent/report.ts';
import type { RuleResult } from '../../engine/decision.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import {
  configMapResource,
  exceptionResource,
  groupResource,
  intentResource,
  isAgent,
  podResource,
  policyResource,
  statefulSetResource,
} from '../objects.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { isLedger, readLedger } from './documents.ts';
import { type GroupName, type NamedGroup, ownerOf } from './groups.ts';
import type { Oracle, Scene } from './oracle.ts';

/** The resources of the objects that results of rules name, by kind. */
const resourceOf: Readonly<Record<string, string>> = {
  RolloutIntent: intentResource,
  RolloutException: exceptionResource,
  RolloutPolicy: policyResource,
};

/** Creates the judge of one group in a simulation with several groups. */
export function judgeIsolation(scene: Scene): Oracle {
  return (scene.groups ?? []).length < 2 ? {} : new IsolationJudge(scene);
}

class IsolationJudge implements Oracle {
  readonly #scene: Scene;
  readonly #groups: readonly NamedGroup[];
  readonly #own: GroupName;
  /** Matches the StatefulSets and pods of the other groups in the namespace. */
  readonly #others: RegExp | undefined;

  constructor(scene: Scene) {
    const { groups = [], groupName = '', namespace } = scene;
    this.#scene = scene;
    this.#groups = groups;
    this.#own = { namespace, name: groupName };
    const others = groups.filter((group) => group.namespace === namespace && group.name !== groupName);
    const names = others.flatMap(({ statefulSets }) => statefulSets).join('|');
    this.#others = names === '' ? undefined : new RegExp(`(?<![\\w-])(?:${names})(?:-\\d+)?(?![\\w-])`);
  }

  committed({ resource, after, actor, type, before }: Commit): void {
    const { admission } = actor;
    const { namespace, name } = this.#own;
    if (admission?.group !== undefined && admission.group !== `${namespace}/${name}` && isOwned(after))
      this.#violated(`the answer of ${admission.by} about ${after.metadata.name} names ${admission.group}`);
    if (!isAgent(actor, this.#scene.agentUser) || type === 'DELETED') return;
    const by = actor.process ?? '';
    if (resource === configMapResource && isLedger(after)) this.#checkLedger(after, before, by);
    const owner = ownerOf(this.#groups, { ...after.metadata, object: after });
    if (resource === podResource || resource === statefulSetResource || owner === undefined) return;
    const [found] = this.#others?.exec(JSON.stringify(resource === groupResource ? after['status'] : after)) ?? [];
    if (found !== undefined) this.#violated(`${by} writes ${found} into ${resource} ${after.metadata.name}`);
  }

  turnEnded(process: string, { decision, performed }: TurnReport): void {
    const actions = [...(decision?.actions ?? []), ...performed.map(({ action }) => action)];
    for (const action of actions) {
      const target = targetOf(action);
      if (!this.#isOurs(target)) this.#violated(`${process} decides ${action.kind} of ${target.namespace}/${target.name}`);
    }
    const results = [...(decision?.waits ?? []), ...(decision?.steps ?? []).flatMap((step) => step.results)];
    for (const result of results) this.#checkSource(process, result);
  }

  /** Checks that the claims name pods and StatefulSets of the group, and that the pins and the run name its revisions. */
  #checkLedger(after: ModelObject, before: ModelObject | undefined, by: string): void {
    const ledger = readLedger(after);
    if (ledger === undefined) return;
    const known = before === undefined ? undefined : readLedger(before);
    for (const [key, { uid, verb }] of ledger.claims) {
      const object = known?.claims.has(key) === true ? undefined : this.#objectOf(uid);
      const { namespace, name = '' } = object?.metadata ?? {};
      if (object !== undefined && !this.#isOurs({ namespace, name }))
        this.#violated(`${by} announces ${verb} of ${namespace}/${name} in the ledger ${after.metadata.namespace}/${after.metadata.name}`);
    }
    const revisions = [...[...ledger.pins.values()].map(({ revision }) => revision), ...Object.values(ledger.run?.target ?? {})];
    const foreign = revisions.find((revision) => !this.#isOurs({ namespace: this.#own.namespace, name: `${revision}` }));
    if (foreign !== undefined) this.#violated(`${by} writes the revision ${foreign} into the ledger ${after.metadata.name}`);
  }

  #checkSource(process: string, { rule, source }: RuleResult): void {
    const [, kind = '', namespace = '', name = ''] = /^(\w+) ([^/]+)\/(.+)$/.exec(source?.object ?? '') ?? [];
    const resource = resourceOf[kind];
    const object = resource === undefined ? undefined : this.#scene.get(resource, namespace, name);
    if (object !== undefined && !this.#isOurs({ namespace, name, object }))
      this.#violated(`${process} evaluates ${rule} by ${source?.object}`);
  }

  #objectOf(uid: string): ModelObject | undefined {
    const all = [...this.#scene.list(podResource), ...this.#scene.list(statefulSetResource)];
    return all.find(({ metadata }) => metadata.uid === uid);
  }

  #isOurs(named: Parameters<typeof ownerOf>[1]): boolean {
    const owner = ownerOf(this.#groups, named);
    return owner === undefined || (owner.namespace === this.#own.namespace && owner.name === this.#own.name);
  }

  #violated(what: string): void {
    this.#scene.violated('L7', `for ${this.#own.namespace}/${this.#own.name}, ${what}`);
  }
}

/** Returns whether a controller owns the object: an orphaned pod belongs to no group. */
function isOwned({ kind, metadata }: ModelObject): boolean {
  return kind !== 'Pod' || (metadata.ownerReferences ?? []).length > 0;
}

function targetOf(action: TakenAction['action']): { readonly namespace: string; readonly name: string } {
  const { namespace } = action;
  return { namespace, name: 'pod' in action ? action.pod : 'statefulSet' in action ? action.statefulSet : action.name };
}
