// The server that a PhasedRollout asks, as a MetricSource: its address without credentials, and the Secret that has them.
import type { Finding } from '../../findings/finding.ts';
import { type ForeignObject, foreignFinding, type Request, type Surroundings } from '../foreign.ts';
import { hashed, slug } from '../names.ts';
import { addressOf } from '../url.ts';

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
export function sourceOfQuery(
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
