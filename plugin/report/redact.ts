// Replaces the texts in recorded answers that may be secret. Equal texts get equal numbers, so differences between objects stay visible.
//
// In objects of other projects, only the texts under known keys stay. So a text that no decision reads is replaced by default.
import { asJsonObject, isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { lastAppliedAnnotation } from '../../cluster/request/resource.ts';
import { templateDigest } from '../../engine/diff/field-diff.ts';
import { approvedPlanAnnotation } from '../../engine/observe/objects.ts';
import { changeAnnotations } from '../../engine/run/origin.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';

export interface RecordedAnswer {
  /** The method and the path, then the body of a review of permissions. */
  readonly request: string;
  readonly status: number;
  readonly date?: string;
  /** The parsed body, or its text if it is not JSON. */
  readonly answer: unknown;
}

/** Keys whose text stays in objects of all kinds. */
const keptTexts: ReadonlySet<string> = new Set(
  [
    'apiVersion kind name namespace generateName uid resourceVersion creationTimestamp deletionTimestamp finalizers $patch',
    'image imageID imagePullPolicy phase reason type status restartPolicy podManagementPolicy serviceName updateRevision currentRevision',
    'lastTransitionTime lastProbeTime startTime startedAt finishedAt nodeName serviceAccountName schedulerName priorityClassName dnsPolicy',
    'topologyKey key operator effect whenUnsatisfiable whenDeleted whenScaled protocol terminationMessagePolicy qosClass continue claimName',
  ]
    .join(' ')
    .split(' '),
);

/** Keys whose whole value stays in objects of all kinds. */
const keptValues: ReadonlySet<string> = new Set(
  'labels matchLabels matchExpressions managedFields ownerReferences requests limits scaleTargetRef maxUnavailable'.split(' '),
);

/** Kinds without secret texts, besides the kinds of this project and of grafana/rollout-operator. Only their annotations are replaced. */
const keptKinds: ReadonlySet<string> = new Set(
  [
    'APIGroupDiscoveryList APIGroupList APIResourceList APIVersions CustomResourceDefinition EndpointSlice HorizontalPodAutoscaler Lease',
    'MutatingWebhookConfiguration Namespace PodDisruptionBudget Scale SelfSubjectAccessReview SelfSubjectReview SelfSubjectRulesReview',
    'Service Status SubjectAccessReview ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration Event',
  ]
    .join(' ')
    .split(' '),
);

const ourGroups = /^(?:rollout-group\.dev|rollout-operator\.grafana\.com)\//;

/** Annotations that decisions or views read: the annotations of this project, of grafana/rollout-operator and of GitOps tools. */
const keptAnnotations =
  /^(?:(?:[\w-]+\.)?rollout-group\.dev|grafana\.com)\/|^(?:argocd\.argoproj\.io\/tracking-id|meta\.helm\.sh\/release-name|configmanagement\.gke\.io\/managed|(?:kubectl\.)?kubernetes\.io\/(?:restartedAt|change-cause))$/;

const causeAnnotation = changeAnnotations.cause;

/** The command line that `kubectl --record` writes as the cause of a change. It may contain values of variables and credentials. */
const recordedCommand = /.*(?:kubectl|--record).*/s;

/** The note of the Event at the start of a run, up to the cause of the change. */
const startNote = /^\w+ started: /;

/** The metric of an API server that `doctor` reads. */
const readMetric = /^kubernetes_feature_enabled\{name="MaxUnavailableStatefulSet",.*$/gm;

/** Returns the answers without the texts that may be secret. The same answers in the same order give the same result. */
export function redactAnswers(answers: readonly RecordedAnswer[]): readonly RecordedAnswer[] {
  const policies = answers.filter(({ request }) => request.includes('/rolloutpolicies')).map(({ answer }) => asJsonObject(answer)['items']);
  const specs = policies.flat().map((policy) => asJsonObject(policy)['spec']);
  const redaction = new Redaction(new Set(specs.flatMap(textsIn)));
  return answers.map((one) => ({ ...one, answer: redaction.answer(one) }));
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

class Redaction {
  readonly #numbers = new Map<string, number>();
  /** The texts in policies. Their conditions can read annotations, so an annotation that a policy names stays. */
  readonly #named: ReadonlySet<string>;

  constructor(named: ReadonlySet<string>) {
    this.#named = named;
  }

  answer({ request, answer }: RecordedAnswer): unknown {
    if (request === 'GET /version') return answer;
    if (request === 'GET /metrics') return (String(answer).match(readMetric) ?? []).join('\n');
    if (!isJsonObject(answer)) return this.#value(answer, '');
    const { items, kind } = answer;
    if (!Array.isArray(items) || keptKinds.has(String(kind))) return this.#object(answer);
    // The items of a list have neither kind nor apiVersion.
    const { apiVersion } = answer;
    const typed = { apiVersion, kind: String(kind).replace(/List$/, '') };
    const objects = items.map(asJsonObject).filter((object) => typed.kind !== 'Event' || isOurEvent(object));
    return { ...answer, items: objects.map((object) => this.#object({ ...typed, ...object })) };
  }

  #object(object: JsonObject): JsonObject {
    const kind = String(object['kind']);
    if (ourGroups.test(String(object['apiVersion']))) return this.#withMetadata(asJsonObject(this.#withCauses(this.#source(object, kind))));
    if (keptKinds.has(kind)) return this.#withMetadata(kind === 'Event' ? asJsonObject(this.#withCauses(object)) : object);
    if (kind === 'Secret') return this.#withMetadata({ ...object, data: hiddenData(object['data']) });
    if (kind === 'ConfigMap') return this.#withMetadata({ ...object, data: this.#documents(object['data']) });
    return this.#withPlan(object, asJsonObject(this.#value(object, '')));
  }

  #withMetadata(object: JsonObject): JsonObject {
    const { metadata } = object;
    return isJsonObject(metadata) && isJsonObject(metadata['annotations'])
      ? { ...object, metadata: { ...metadata, annotations: this.#annotations(metadata['annotations']) } }
      : object;
  }

  /** The address of a callback may contain a token. */
  #source(object: JsonObject, kind: string): JsonObject {
    if (kind !== 'MetricSource' && kind !== 'NotificationChannel') return object;
    const hidden = (value: unknown): unknown =>
      isJsonObject(value)
        ? Object.fromEntries(
            Object.entries(value).map(([key, part]) => [
              key,
              key === 'url' ? `https://${this.#number(part)}.redacted.invalid` : hidden(part),
            ]),
          )
        : value;
    return { ...object, spec: hidden(object['spec']) };
  }

  /** The ledger of a group that pins pods contains pod templates. */
  #documents(data: unknown): JsonObject {
    const visit = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(visit);
      if (!isJsonObject(value)) return value;
      const entries = Object.entries(value);
      return Object.fromEntries(
        entries.map(([key, part]) => [key, key === 'template' && isJsonObject(part) ? this.#value(part, '') : visit(part)]),
      );
    };
    const entries = Object.entries(asJsonObject(data));
    return Object.fromEntries(
      entries.map(([key, text]) => {
        const document = typeof text === 'string' ? tryParseJson(text) : undefined;
        return [key, document === undefined ? text : JSON.stringify(this.#withCauses(visit(document)))];
      }),
    );
  }

  /** Returns the value without the command lines among the causes of changes. */
  #withCauses(value: unknown, key = ''): unknown {
    if (typeof value === 'string') {
      const [start = ''] = key === 'note' ? (startNote.exec(value) ?? []) : [];
      return key === 'cause' || start !== '' ? `${start}${this.#cause(value.slice(start.length))}` : value;
    }
    if (Array.isArray(value)) return value.map((item) => this.#withCauses(item));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.#withCauses(part, name)]));
  }

  #cause(text: unknown): unknown {
    return recordedCommand.test(String(text)) ? this.#hide(text) : text;
  }

  #value(value: unknown, key: string): unknown {
    if (typeof value === 'string') return keptTexts.has(key) ? value : this.#hide(value);
    if (Array.isArray(value)) return value.map((item) => this.#value(item, key));
    if (!isJsonObject(value)) return value;
    if (key === 'annotations') return this.#annotations(value);
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, keptValues.has(name) ? part : this.#value(part, name)]));
  }

  #annotations(annotations: JsonObject): JsonObject {
    const isNamed = (key: string): boolean => this.#named.has(key) || this.#named.has(`target.annotations.${key}`);
    const isKept = (key: string): boolean => keptAnnotations.test(key) || (key !== lastAppliedAnnotation && isNamed(key));
    const shown = (key: string, value: unknown): unknown => (key === causeAnnotation ? this.#cause(value) : value);
    return Object.fromEntries(
      Object.entries(annotations).map(([key, value]) => [key, isKept(key) ? shown(key, value) : this.#hide(value)]),
    );
  }

  /** Changes an approved plan of the template, so that it approves the redacted template. Another plan stays. */
  #withPlan(before: JsonObject, after: JsonObject): JsonObject {
    const metadata = asJsonObject(after['metadata']);
    const annotations = asJsonObject(metadata['annotations']);
    const plan = tryParseJson(annotations[approvedPlanAnnotation]);
    if (!isJsonObject(plan) || plan['template'] !== templateDigest(before)) return after;
    const text = JSON.stringify({ ...plan, template: templateDigest(after) });
    return { ...after, metadata: { ...metadata, annotations: { ...annotations, [approvedPlanAnnotation]: text } } };
  }

  #hide(value: unknown): unknown {
    return value === '' || typeof value !== 'string' ? value : `(redacted ${this.#number(value)})`;
  }

  #number(value: unknown): number {
    const text = String(value);
    const number = this.#numbers.get(text) ?? this.#numbers.size + 1;
    this.#numbers.set(text, number);
    return number;
  }
}

function isOurEvent({ reportingController, deprecatedSource }: JsonObject): boolean {
  return `${reportingController ?? asJsonObject(deprecatedSource)['component'] ?? ''}`.startsWith('rollout-group');
}

/** Replaces each value that is not blank, and keeps the keys: `doctor` reports missing keys and blank values. */
function hiddenData(data: unknown): JsonObject {
  const isBlank = (value: unknown): boolean => typeof value !== 'string' || atob(value).trim() === '';
  return Object.fromEntries(Object.entries(asJsonObject(data)).map(([key, value]) => [key, isBlank(value) ? '' : btoa('redacted')]));
}
