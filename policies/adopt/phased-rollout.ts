// Converts PhasedRollouts of sts.plus: one StatefulSet, one pod at a time, and a query to Prometheus before each pod.
import * as z from 'zod';
import { formatDuration } from '../duration.ts';
import type { Finding } from '../findings/finding.ts';
import { queryProblem } from '../integrations/promql.ts';
import { valueAt } from '../schema/schema-walk.ts';
import {
  type ConversionContext,
  type ConvertedObject,
  type ForeignObject,
  metadataFindings,
  type NeededDocument,
  refusal,
  reporterFor,
  specFindings,
  unknownFields,
} from './foreign.ts';
import { hashed, slug, zoneNames } from './names.ts';
import { addressOf } from './url.ts';

/** The annotation of a StatefulSet with the name of its PhasedRollout. */
export const phasedOwner = 'sts.plus/phasedRollout';

/** The defaults that the webhook of the operator sets for an absent value and for 0. */
const usual = { initialDelaySeconds: 60, periodSeconds: 60, successThreshold: 3 } as const;
const limits = { waves: 100, consecutive: 1000, query: 4096 } as const;

const count = z.int().min(0).nullish();
const phasedSpec = z.object({
  targetRef: z.string().min(1),
  standardRollingUpdate: z.boolean().nullish(),
  check: z.object({
    initialDelaySeconds: count,
    periodSeconds: count,
    successThreshold: count,
    query: z.object({
      expr: z.string().min(1),
      url: z.string().min(1),
      insecureSkipVerify: z.boolean().nullish(),
      secretRef: z.string().nullish(),
    }),
  }),
});

type PhasedSpec = z.infer<typeof phasedSpec>;

export function isPhasedRollout({ kind, value }: ForeignObject): boolean {
  return kind === 'PhasedRollout' && String(value['apiVersion']).startsWith('sts.plus/');
}

/** Converts a PhasedRollout. Without its StatefulSet there is no group, because the replicas give the number of waves. */
export function readPhasedRollout(object: ForeignObject, context: ConversionContext): ConvertedObject {
  const read = phasedSpec.safeParse(object.value['spec']);
  if (!read.success) return { object, findings: specFindings(object, phasedSpec), needs: [] };
  const spec = read.data;
  const set = context.statefulSet(object.namespace, spec.targetRef);
  const gate = readGate(object, spec);
  const { source, findings: sourceFindings } = readSource(object, spec.check.query, gate.everyMs, context.secretKeys);
  const target = targetFindings(object, set, spec.targetRef);
  const replicas = replicasOf(set);
  const findings = [
    ...unknownFields(object, phasedSpec),
    ...metadataFindings(object),
    ...target,
    ...gate.findings,
    ...sourceFindings,
    ...(set === undefined || replicas === undefined ? [] : waveFindings(object, replicas)),
    ...progressFindings(object),
  ];
  if (replicas === undefined || target.length > 0 || gate.query === '' || source === undefined) return { object, findings, needs: [] };
  const zone = zoneNames([spec.targetRef]).get(spec.targetRef) ?? spec.targetRef;
  const group: ConvertedObject['group'] = {
    statefulSet: spec.targetRef,
    statefulSetField: 'spec.targetRef',
    spec: (nameOf) => ({
      members: { zones: [{ name: zone, statefulSet: spec.targetRef }] },
      replicas: { leader: true },
      rollout: { strategy: 'partition', maxUnavailable: 1, waves: wavesOf(zone, replicas) },
      gates: [{ name: gateName, ...gate.settings, prometheus: { source: nameOf(source.key), query: gate.query } }],
    }),
  };
  return { object, findings, needs: [source], group };
}

const gateName = 'check';

interface GateReading {
  readonly settings: Readonly<Record<string, unknown>>;
  /** The query; empty if the expression is unusable. */
  readonly query: string;
  readonly everyMs: number;
  readonly findings: readonly Finding[];
}

/** Returns the gate. As in the operator, a reading without a series fails, and failed readings never fail the run. */
function readGate(object: ForeignObject, { check, standardRollingUpdate }: PhasedSpec): GateReading {
  const isStandard = standardRollingUpdate === true;
  const report = reporterFor(object);
  const findings: Finding[] = [];
  const numberOf = (field: keyof typeof usual): number => {
    if (check[field] !== 0) return check[field] ?? usual[field];
    findings.push(report('RG7003', `spec.check.${field}`, `spec.check.${field} is 0; the operator uses its default ${usual[field]}`));
    return usual[field];
  };
  const everyMs = numberOf('periodSeconds') * 1000;
  const threshold = numberOf('successThreshold');
  if (threshold > limits.consecutive) {
    const message = `spec.check.successThreshold is ${threshold}; the maximum of a gate is ${limits.consecutive}`;
    findings.push(report('RG7002', 'spec.check.successThreshold', message));
  }
  const { query, findings: queryFindings } = readQuery(object, check.query.expr);
  findings.push(...queryFindings);
  if (isStandard) {
    const message =
      'spec.standardRollingUpdate turns the check off; the gate is written with mode: observe, which records results and blocks nothing';
    findings.push(report('RG7003', 'spec.standardRollingUpdate', message, 'to let the gate block again, remove mode: observe'));
  }
  const settings = {
    ...(isStandard ? { mode: 'observe' } : {}),
    initialDelay: formatDuration(numberOf('initialDelaySeconds') * 1000),
    every: formatDuration(everyMs),
    consecutive: Math.min(threshold, limits.consecutive),
    failureLimit: 0,
    noData: 'fail',
    onError: 'hold',
    pass: { '>=': [{ var: 'value' }, 1] },
  };
  return { settings, query, everyMs, findings };
}

/** Returns the query of the gate, empty if the expression is unusable, and findings about the expression. */
function readQuery(object: ForeignObject, expression: string): { readonly query: string; readonly findings: readonly Finding[] } {
  const report = reporterFor(object);
  const field = 'spec.check.query.expr';
  const { query, hasComment, isAlwaysTrue } = countedQuery(expression);
  const problem =
    query === ''
      ? 'is empty'
      : query.length > limits.query
        ? `is longer than ${limits.query} characters`
        : queryProblem(query) && 'is not valid PromQL';
  const comment =
    'the query has a comment: the operator writes the query on one line, so the comment hides the rest; the gate omits only the comment';
  return {
    query: problem === undefined ? query : '',
    findings: [
      ...(problem === undefined ? [] : [refusal(object, field, `${field} ${problem}`)]),
      ...(hasComment ? [report('RG7002', field, comment, 'check that the whole query is what you want')] : []),
      ...(isAlwaysTrue ? [report('RG7006', field, 'the query returns a series regardless of its value')] : []),
    ],
  };
}

/** Returns one wave per pod, with the gate before each. If the pods outnumber the allowed waves, each wave adds one percent of the pods. */
function wavesOf(zone: string, replicas: number): readonly unknown[] {
  const before = { gates: [gateName] };
  const waveCount = Math.max(1, Math.min(replicas, limits.waves));
  const isByPods = replicas <= limits.waves;
  return Array.from({ length: waveCount }, (_, index) => {
    const step = index + 1;
    const amount = step === waveCount ? { percent: 100 } : isByPods ? { pods: step } : { percent: step };
    return { name: isByPods ? `pod-${step}` : `percent-${step}`, zones: [zone], ...amount, before };
  });
}

function waveFindings(object: ForeignObject, replicas: number): readonly Finding[] {
  const report = reporterFor(object);
  if (replicas > limits.waves) {
    const message = `the gate is read before each hundredth of the ${replicas} pods, not before each pod: a group has at most ${limits.waves} waves`;
    return [report('RG7003', 'spec.targetRef', message)];
  }
  if (replicas < 1) return [];
  const pods = replicas === 1 ? 'the 1 pod' : `each of the ${replicas} pods`;
  const message = `the gate is read before ${pods}; pods of a later scale-up belong to the last wave`;
  return [report('RG7003', 'spec.targetRef', message, 'update the waves after you scale')];
}

/** Returns the replicas of the manifest, 1 by default; undefined if they are not a number of pods. */
function replicasOf(set: ForeignObject | undefined): number | undefined {
  const replicas = valueAt(set?.value, ['spec', 'replicas']) ?? 1;
  return typeof replicas === 'number' && Number.isInteger(replicas) && replicas >= 0 ? replicas : undefined;
}

function targetFindings(object: ForeignObject, set: ForeignObject | undefined, name: string): readonly Finding[] {
  const refuse = (cause: string, hint: string) => [refusal(object, 'spec.targetRef', `the StatefulSet ${name} ${cause}`, hint)];
  if (set === undefined)
    return refuse('was not found, so the number of waves is unknown', 'add its manifest, or read the cluster with --from-cluster');
  if (replicasOf(set) === undefined) return refuse('has invalid replicas', 'fix its manifest');
  const strategy = valueAt(set.value, ['spec', 'updateStrategy', 'type']) ?? 'RollingUpdate';
  if (strategy === 'RollingUpdate') return [];
  const cause = `has the update strategy ${String(strategy)}, which the operator does not manage`;
  return refuse(cause, 'set it to RollingUpdate, or write a group with the strategy onDelete');
}

function progressFindings(object: ForeignObject): readonly Finding[] {
  if (valueAt(object.value, ['status', 'phase']) !== 'Rolling') return [];
  const revision = valueAt(object.value, ['status', 'updateRevision']);
  const to = typeof revision === 'string' && revision !== '' ? ` to ${revision}` : '';
  return [reporterFor(object)('RG7007', 'status.phase', `the object is rolling${to}`)];
}

interface SourceReading {
  /** The MetricSource; absent if the server cannot be queried. An error then states why. */
  readonly source?: NeededDocument;
  readonly findings: readonly Finding[];
}

/** Returns the queried server as MetricSource: its address without credentials, and the Secret with the credentials. */
function readSource(object: ForeignObject, query: PhasedSpec['check']['query'], everyMs: number, secretKeys: SecretKeys): SourceReading {
  const report = reporterFor(object);
  const field = 'spec.check.query.url';
  const address = addressOf(query.url);
  if (address === undefined) {
    const hint = 'write the address with its scheme, such as https://prometheus.monitoring.svc:9090';
    return { findings: [refusal(object, field, `${field} is not an http or https address, so no query ever succeeded`, hint)] };
  }
  const credentials = readCredentials(object, query.secretRef ?? '', address.hasUser, secretKeys);
  const findings = [...credentials.findings];
  if (address.hasQuery)
    findings.push(report('RG7002', field, 'the query and fragment of the address are omitted: the operator never sends them'));
  if (query.insecureSkipVerify === true) {
    const message = 'insecureSkipVerify is omitted: the agent always verifies certificates';
    const hint = 'set spec.prometheus.ca of the MetricSource to the CA certificate of the server';
    findings.push(report('RG7002', 'spec.check.query.insecureSkipVerify', message, hint));
  }
  if (credentials.settings === undefined) return { findings };
  const source: NeededDocument = {
    kind: 'MetricSource',
    key: `prometheus ${address.url} ${credentials.secret ?? ''}`,
    base: slug(address.host, 54) || 'prometheus',
    spec: { prometheus: { url: address.url, ...credentials.settings } },
    namespace: object.namespace,
    everyMs,
  };
  return { source, findings };
}

interface Credentials {
  /** The credential fields of the MetricSource; absent if the Secret is unusable. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly findings: readonly Finding[];
  readonly secret?: string;
}

type SecretKeys = ConversionContext['secretKeys'];

/** Returns the credential fields for the Secret of this name. `secretRef` is empty if the object names no Secret. */
function readCredentials(object: ForeignObject, secretRef: string, hasUser: boolean, secretKeys: SecretKeys): Credentials {
  const { namespace, name } = object;
  const report = reporterFor(object);
  const [urlField, secretField] = ['spec.check.query.url', 'spec.check.query.secretRef'];
  if (secretRef === '') {
    if (!hasUser) return { settings: {}, findings: [] };
    const secret = secretName(namespace, `${name}-prometheus`);
    const message = `the address contains a user, which is omitted; the MetricSource names the Secret ${secret} instead`;
    const hint = `create the Secret ${secret} with the keys username and password in the agent's namespace`;
    return { settings: basicAuth(secret), findings: [report('RG7004', urlField, message, hint)], secret };
  }
  const user = 'the address contains a user, which is omitted: the operator uses the Secret instead';
  const dropped = hasUser ? [report('RG7002', urlField, user)] : [];
  const secret = secretName(namespace, secretRef);
  const keys = secretKeys(namespace, secretRef);
  const has = (key: string) => keys?.includes(key) ?? false;
  const isToken = keys === undefined || (has('token') && !has('username'));
  const isBasic = has('username') && has('password') && !has('token');
  if (!isToken && !isBasic) {
    const cause = `the Secret ${secretRef} needs either a token or a username and a password, so no query was ever sent`;
    return { findings: [...dropped, refusal(object, secretField, cause, 'fix the Secret')] };
  }
  const guess = keys === undefined ? '; its keys are unknown, so token is assumed' : '';
  const message = `the agent reads only Secrets of its namespace: the MetricSource names ${secret} there${guess}`;
  const other = keys === undefined ? ', and write basicAuth if it has a username and a password' : '';
  const hint = `copy the Secret ${namespace}/${secretRef} as ${secret} into the agent's namespace${other}`;
  const settings = isToken ? { bearerToken: { name: secret, key: 'token' } } : basicAuth(secret);
  return { settings, findings: [...dropped, report('RG7004', secretField, message, hint)], secret };
}

function basicAuth(name: string): Readonly<Record<string, unknown>> {
  return { basicAuth: { username: { name, key: 'username' }, password: { name, key: 'password' } } };
}

/** Returns a name that contains the namespace, because Secrets of several namespaces are copied into the agent's namespace. */
function secretName(namespace: string, name: string): string {
  return hashed(`${namespace}-${name}`, 253);
}

interface CountedQuery {
  /** The query, which returns one number if a series exists and no result otherwise. Empty for an empty expression. */
  readonly query: string;
  readonly hasComment: boolean;
  /** True if no comparison filters the series, so the expression returns a series regardless of its value. */
  readonly isAlwaysTrue: boolean;
}

/** Returns a query for the number of series, on one line, without comments. In a range vector, the newest sample of each series counts. */
export function countedQuery(expression: string): CountedQuery {
  const { text, bare, hasComment } = onOneLine(expression);
  const isRange = /\]\s*(?:(?:offset|@)\s*\S+\s*)*$/i.test(bare);
  const query = text === '' ? '' : `count(${isRange ? `last_over_time(${text})` : text})`;
  return { query, hasComment, isAlwaysTrue: comparesNothing(bare) };
}

function comparesNothing(bare: string): boolean {
  const outside = bare.replace(/\{[^}]*\}/g, '');
  return /(?:[=!]=|[<>]=?)\s*bool\b/i.test(outside) || !/[=!]=|[<>]|\babsent|\bunless\b/i.test(outside);
}

/** Matches a text in quotes, even without its closing quote, or blanks and comments. Text in backquotes has no escapes. */
const literalOrBlanks = /(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|`[^`]*`?)|((?:\s|#[^\n]*)+)/gs;

/** Returns the expression on one line, without comments. In `bare`, string literals are empty. */
function onOneLine(expression: string): { readonly text: string; readonly bare: string; readonly hasComment: boolean } {
  let hasComment = false;
  const written = (literalOf: (literal: string) => string): string =>
    expression.replace(literalOrBlanks, (piece, blanks?: string) => {
      if (blanks === undefined) return literalOf(piece);
      hasComment ||= blanks.includes('#');
      return ' ';
    });
  return { text: written((literal) => literal).trim(), bare: written(() => '""').trim(), hasComment };
}
