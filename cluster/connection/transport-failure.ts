// Why no answer, in words for the person who can do something about it.
import { messageOf } from '../../policies/error-message.ts';
import { type Connection, ConnectionFailure } from './connection.ts';
import { DeadlineOver } from './deadline.ts';
import { ExchangeFailure } from './exchange.ts';

interface FailureContext {
  readonly connection: Pick<Connection, 'server' | 'origin' | 'createProxyAgent'>;
  readonly timeoutMs: number;
  readonly mayBeApplied: boolean;
}

interface Explanation {
  readonly message: string;
  /** A ConnectionFailure when more than the network is at fault. */
  readonly cause: unknown;
}

export function explain(error: unknown, { connection, timeoutMs, mayBeApplied }: FailureContext): Explanation {
  const root = error instanceof ExchangeFailure ? error.cause : error;
  const route = connection.createProxyAgent === undefined ? '' : ', through its proxy';
  const where = `the API server at ${connection.server} (${connection.origin}${route})`;
  if (root instanceof DeadlineOver) {
    const message = mayBeApplied
      ? `${where} gave no complete answer within ${timeoutMs} ms`
      : `${where} could not be reached within ${timeoutMs} ms`;
    return { message, cause: root };
  }
  if (root instanceof ConnectionFailure || !(root instanceof Error)) return { message: messageOf(root), cause: root };
  if (isDistrust(error)) {
    const message = `the certificate of ${where} is not trusted: ${root.message}; check the certificate authority`;
    return { message, cause: new ConnectionFailure('configuration', message, { cause: root }) };
  }
  const reason = reasons[codeOf(root)];
  if (reason !== undefined) return { message: `${where} ${reason}`, cause: root };
  if (!(error instanceof ExchangeFailure)) return { message: root.message, cause: root };
  return { message: `${where} ${mayBeApplied ? 'broke off' : 'could not be reached'}: ${root.message}`, cause: root };
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections. Check that the cluster runs and the address is right',
  ENOTFOUND: 'has an unknown host name. Check the address and the network (VPN)',
  EAI_AGAIN: 'has a host name that cannot be resolved. Check the network',
  EHOSTUNREACH: 'has no route. Check the network (VPN)',
  ENETUNREACH: 'has no route. Check the network (VPN)',
  EPROTO: 'does not speak TLS. Check whether the address begins with http://',
};

/** The server's certificate was looked at, and not believed. */
export function isDistrust(error: unknown): boolean {
  const root = error instanceof ExchangeFailure ? error.cause : error;
  return /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|INVALID_CA|ERR_TLS_CERT_ALTNAME_INVALID)$/.test(
    codeOf(root),
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
