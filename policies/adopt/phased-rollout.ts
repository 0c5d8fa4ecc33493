// Converts PhasedRollouts of sts.plus: one StatefulSet, one pod at a time, and a query to Prometheus before each pod.
import { z } from 'zod';
import { formatDuration } from '../duration.ts';
import type { Finding } from '../findings/finding.ts';
import { queryProblem } from '../integrations/promql.ts';
import { apiVersion } from '../schema/kinds.ts';
import { valueAt } from '../schema/schema-walk.ts';
import {
  type ForeignObject,
  foreignFinding,
  metadataFindings,
  type Reading,
  type Request,
  type Surroundings,
  specFindings,
  unknownFields,
} from './foreign.ts';
import { hashed, slug, zoneNames } from './names.ts';
import { addressOf } from './url.ts';

/** The annotation of a StatefulSet that says which PhasedRollout has it. */
export const phasedOwner = 'sts.plus/phasedRollout';

/** The value that the webhook of the original writes for an absent value and for 0. */
const usual = { initialDelaySeconds: 60, periodSeconds: 60, successThreshold: 3 } as const;
/** The range of our schema. */
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

const known = {
  targetRef: true,
  standardRollingUpdate: true,
  check: {
    initialDelaySeconds: true,
    periodSeconds: true,
    successThreshold: true,
    query: { expr: true, url: true, insecureSkipVerify: true, secretRef: true },
  },
} as const;

export function isPhasedRollout({ kind, value }: ForeignObject): boolean {
  return kind === 'PhasedRollout' && String(value['apiVersion']).startsWith('sts.plus/');
}

/** The group of a PhasedRollout. The StatefulSet must be known: how many pods it has says how many waves there are. */
export function readPhasedRollout(object: ForeignObject, around: Surroundings): Reading {
  const read = phasedSpec.safeParse(object.value['spec']);
  if (!read.success) return { object, findings: specFindings(object, phasedSpec), wishes: [] };
  const { check, targetRef, standardRollingUpdate } = read.data;
  const set = around.statefulSet(object.namespace, targetRef);
  const gate = gateOf(object, check, standardRollingUpdate === true);
  const { wish, findings: sourceFindings } = sourceOfQuery(
    object,
    {
      url: check.query.url,
      secretRef: check.query.secretRef ?? undefined,
      insecureSkipVerify: check.query.insecureSkipVerify ?? undefined,
    },
    { secretKeys: around.secretKeys, everyMs: gate.everyMs },
  );
  const target = targetFindings(object, set, targetRef);
  const replicas = replicasOf(set);
  const findings = [
    ...unknownFields(object, known),
    ...metadataFindings(object),
    ...target,
    ...gate.findings,
    ...sourceFindings,
    ...(set === undefined || replicas === undefined ? [] : waveFindings(object, replicas)),
    ...progressFindings(object),
  ];
  if (replicas === undefined || target.length > 0 || gate.query === '' || wish === undefined) return { object, findings, wishes: [] };
  const zone = zoneNames([targetRef]).get(targetRef) ?? targetRef;
  const document = (source: string) => ({
    apiVersion,
    kind: 'RolloutGroup',
    metadata: { name: object.name, namespace: object.namespace },
    spec: {
      members: { zones: [{ name: zone, statefulSet: targetRef }] },
      replicas: { leader: true },
      rollout: { strategy: 'partition', maxUnavailable: 1, waves: wavesOf(zone, replicas) },
      gates: [{ name: gateName, ...gate.settings, prometheus: { source, query: gate.query } }],
    },
  });
  const group = {
    name: object.name,
    statefulSet: targetRef,
    statefulSetPath: ['spec', 'targetRef'],
    document: (nameOf: (key: string) => string) => document(nameOf(wish.key)),
  };
  return { object, findings, wishes: [wish], group };
}

const gateName = 'check';

interface GateReading {
  readonly settings: Readonly<Record<string, unknown>>;
  /** Empty when there is nothing that could be asked. */
  readonly query: string;
  readonly everyMs: number;
  readonly findings: readonly Finding[];
}

/** A success is any series, a failure none; failures hold for as long as they last, as there. */
function gateOf(object: ForeignObject, check: z.infer<typeof phasedSpec>['check'], isStandard: boolean): GateReading {
  const findings: Finding[] = [];
  const expression: readonly string[] = ['spec', 'check', 'query', 'expr'];
  const numberOf = (field: keyof typeof usual): number => {
    if (check[field] !== 0) return check[field] ?? usual[field];
    const message = `spec.check.${field} is 0, in whose place the webhook of the original writes ${usual[field]}`;
    findings.push(foreignFinding(object, 'RG7003', ['spec', 'check', field], { message }));
    return usual[field];
  };
  const everyMs = numberOf('periodSeconds') * 1000;
  const threshold = numberOf('successThreshold');
  if (threshold > limits.consecutive) {
    const message = `spec.check.successThreshold is ${threshold}; a gate counts to ${limits.consecutive} at most`;
    findings.push(foreignFinding(object, 'RG7002', ['spec', 'check', 'successThreshold'], { message }));
  }
  const { query, hasComment, isAlwaysTrue } = countedQuery(check.query.expr);
  const problem = query === '' || query.length > limits.query ? undefined : queryProblem(query);
  const isUsable = query !== '' && query.length <= limits.query && problem === undefined;
  if (!isUsable) {
    const size = query === '' ? 'is empty' : `is longer than ${limits.query} characters`;
    const message = `spec.check.query.expr ${problem === undefined ? size : 'is no PromQL'}; the object is left out`;
    findings.push(foreignFinding(object, 'RG7001', expression, { message }));
  }
  if (hasComment) {
    const message =
      'the original puts the query on one line, so that its comment hides what comes behind; here the comment alone is left out';
    findings.push(foreignFinding(object, 'RG7002', expression, { message, hint: 'look whether the whole query says what you want' }));
  }
  if (isAlwaysTrue) {
    findings.push(foreignFinding(object, 'RG7006', expression, { message: 'the query returns a series for every value' }));
  }
  if (isStandard) {
    const message =
      'spec.standardRollingUpdate takes the gate away; the gate is written with mode: observe, which records and holds nothing';
    const hint = 'remove mode: observe from the gate to have it hold again';
    findings.push(foreignFinding(object, 'RG7003', ['spec', 'standardRollingUpdate'], { message, hint }));
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
  return { settings, query: isUsable ? query : '', everyMs, findings };
}

/** One pod for each wave, with the gate before it; of more pods than there may be waves, a hundredth for each. */
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
  const path = ['spec', 'targetRef'];
  if (replicas > limits.waves) {
    const message = `the gate is asked before each hundredth of the ${replicas} pods, and not before each pod: a group has ${limits.waves} waves at most`;
    return [foreignFinding(object, 'RG7003', path, { message })];
  }
  if (replicas < 1) return [];
  const message = `the gate is asked before each of ${replicas === 1 ? 'its 1 pod' : `its ${replicas} pods`}; pods of a later scale-up belong to the last wave`;
  return [foreignFinding(object, 'RG7003', path, { message, hint: 'write the waves again after you have scaled' })];
}

/** As the API server takes them: 1 where none are named; undefined for what is no number of pods. */
function replicasOf(set: ForeignObject | undefined): number | undefined {
  const replicas = valueAt(set?.value, ['spec', 'replicas']) ?? 1;
  return typeof replicas === 'number' && Number.isInteger(replicas) && replicas >= 0 ? replicas : undefined;
}

function targetFindings(object: ForeignObject, set: ForeignObject | undefined, name: string): readonly Finding[] {
  const say = (message: string, hint: string) => [foreignFinding(object, 'RG7001', ['spec', 'targetRef'], { message, hint })];
  if (set === undefined) {
    const message = `the StatefulSet ${name} was not found, so the number of waves is unknown; the object is omitted`;
    return say(message, 'read its manifest too, or the cluster with --from-cluster');
  }
  const strategy = valueAt(set.value, ['spec', 'updateStrategy', 'type']) ?? 'RollingUpdate';
  if (replicasOf(set) === undefined) {
    return say(`the StatefulSet ${name} has invalid replicas; the object is omitted`, 'mend its manifest');
  }
  if (strategy === 'RollingUpdate') return [];
  const message = `the StatefulSet ${name} has the update strategy ${String(strategy)}, which the original does not manage; the object is left out`;
  return say(message, 'set it to RollingUpdate, or write a group with the strategy onDelete');
}

function progressFindings(object: ForeignObject): readonly Finding[] {
  const phase = valueAt(object.value, ['status', 'phase']);
  if (phase !== 'Rolling') return [];
  const revision = valueAt(object.value, ['status', 'updateRevision']);
  const to = typeof revision === 'string' && revision !== '' ? ` to ${revision}` : '';
  return [foreignFinding(object, 'RG7007', ['status', 'phase'], { message: `the object is rolling${to}` })];
}

interface QueriedServer {
  readonly url: string;
  readonly secretRef?: string | undefined;
  readonly insecureSkipVerify?: boolean | undefined;
}

interface SourceReading {
  /** Absent when the server cannot be asked; an error says why. */
  readonly wish?: Request;
  readonly findings: readonly Finding[];
}

const queryPath = ['spec', 'check', 'query'] as const;

type Say = (code: 'RG7001' | 'RG7002' | 'RG7004', field: string, message: string, hint?: string) => Finding;

/** `everyMs` is how often the gate asks. */
function sourceOfQuery(
  object: ForeignObject,
  { url, secretRef, insecureSkipVerify = false }: QueriedServer,
  { secretKeys, everyMs }: Pick<Surroundings, 'secretKeys'> & { readonly everyMs: number },
): SourceReading {
  const say: Say = (code, field, message, hint) => foreignFinding(object, code, [...queryPath, field], { message, hint });
  const address = addressOf(url);
  if (address === undefined) {
    const message = 'spec.check.query.url is no http or https address, so that no query was ever answered; the object is left out';
    return {
      findings: [say('RG7001', 'url', message, 'write the address with its scheme, such as https://prometheus.monitoring.svc:9090')],
    };
  }
  const credentials = credentialsOf(object, { secretRef: secretRef || undefined, hasUser: address.hasUser, secretKeys, say });
  const findings = [...credentials.findings];
  if (address.hasQuery)
    findings.push(say('RG7002', 'url', 'the query and the fragment of the address are left out, as they were never sent'));
  if (insecureSkipVerify) {
    const message = 'certificates are always checked here, and insecureSkipVerify is left out';
    findings.push(
      say('RG7002', 'insecureSkipVerify', message, 'name the authority of the server in spec.prometheus.ca of the MetricSource'),
    );
  }
  if (credentials.isWrong) return { findings };
  const wish: Request = {
    kind: 'MetricSource',
    key: `prometheus ${address.url} ${credentials.secret ?? ''}`,
    base: slug(address.host, 54) || 'prometheus',
    spec: { prometheus: { url: address.url, ...credentials.settings } },
    namespace: object.namespace,
    everyMs,
  };
  return { wish, findings };
}

interface Credentials {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly findings: readonly Finding[];
  readonly secret?: string;
  readonly isWrong?: true;
}

interface CredentialsInput extends Pick<Surroundings, 'secretKeys'> {
  readonly secretRef: string | undefined;
  readonly hasUser: boolean;
  readonly say: Say;
}

function credentialsOf(object: ForeignObject, { secretRef, hasUser, secretKeys, say }: CredentialsInput): Credentials {
  const { namespace, name } = object;
  if (secretRef === undefined) {
    if (!hasUser) return { settings: {}, findings: [] };
    const secret = secretName(namespace, `${name}-prometheus`);
    const message = `the address holds a user, which is left out; the MetricSource names the Secret ${secret} instead`;
    const hint = `make the Secret ${secret} with the keys username and password in the agent's namespace`;
    return { settings: basicAuth(secret), findings: [say('RG7004', 'url', message, hint)], secret };
  }
  const dropped = hasUser ? [say('RG7002', 'url', 'the address holds a user, which is left out; the Secret took its place there too')] : [];
  const secret = secretName(namespace, secretRef);
  const keys = secretKeys(namespace, secretRef);
  const has = (key: string) => keys?.includes(key) ?? false;
  const isToken = keys === undefined || (has('token') && !has('username'));
  const isBasic = has('username') && has('password') && !has('token');
  if (!isToken && !isBasic) {
    const message = `the Secret ${secretRef} has neither a token alone nor a username with a password, so that no query was ever sent; the object is left out`;
    return { settings: {}, findings: [...dropped, say('RG7001', 'secretRef', message, 'mend the Secret')], isWrong: true };
  }
  const guess = keys === undefined ? '; which keys it has could not be seen, and token is assumed' : '';
  const message = `the agent reads only Secrets of its namespace: the MetricSource names ${secret} there${guess}`;
  const other = keys === undefined ? ', and write basicAuth if it has a username and a password' : '';
  const hint = `copy the Secret ${namespace}/${secretRef} as ${secret} into the agent's namespace${other}`;
  const settings = isToken ? { bearerToken: { name: secret, key: 'token' } } : basicAuth(secret);
  return { settings, findings: [...dropped, say('RG7004', 'secretRef', message, hint)], secret };
}

function basicAuth(name: string): Readonly<Record<string, unknown>> {
  return { basicAuth: { username: { name, key: 'username' }, password: { name, key: 'password' } } };
}

/** Secrets of several namespaces meet in that of the agent, so that their names say where they come from. */
function secretName(namespace: string, name: string): string {
  return hashed(`${namespace}-${name}`, 253);
}

interface CountedQuery {
  /** One number while there is a series, nothing otherwise. Empty when the expression is. */
  readonly query: string;
  /** The expression has a comment, which the original makes of everything behind it. */
  readonly hasComment: boolean;
  /** The expression has no comparison, so it returns a series for every value. */
  readonly isAlwaysTrue: boolean;
}

/**
 * The query that gives the number of series of a PromQL expression, without its comments and on one line. A range vector cannot be counted, so
 * that its last samples are. This reads no grammar: what Prometheus refuses it refuses still.
 */
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

const quotes: ReadonlySet<string> = new Set(['"', "'", '`']);

/** Blanks become one, except in texts; `bare` has nothing in its texts. */
function onOneLine(expression: string): { readonly text: string; readonly bare: string; readonly hasComment: boolean } {
  let text = '';
  let bare = '';
  let hasComment = false;
  for (let at = 0; at < expression.length; ) {
    const character = expression[at] ?? '';
    if (quotes.has(character)) {
      const end = endOfText(expression, at);
      text += expression.slice(at, end);
      bare += '""';
      at = end;
    } else if (character === '#') {
      hasComment = true;
      const end = expression.indexOf('\n', at);
      at = end < 0 ? expression.length : end;
    } else if (/\s/.test(character)) {
      if (!text.endsWith(' ')) text += ' ';
      bare += ' ';
      at += 1;
    } else {
      text += character;
      bare += character;
      at += 1;
    }
  }
  return { text: text.trim(), bare: bare.trim(), hasComment };
}

/** Returns the index after the closing quote, or the end of the expression. Backquotes have no escapes. */
function endOfText(expression: string, start: number): number {
  const quote = expression[start];
  for (let at = start + 1; at < expression.length; at += 1) {
    if (expression[at] === '\\' && quote !== '`') at += 1;
    else if (expression[at] === quote) return at + 1;
  }
  return expression.length;
}
