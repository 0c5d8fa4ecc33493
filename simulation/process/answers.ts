// Builds faulty answers: errors of servers and proxies, expired tokens, invalid bodies.
import type { RequestFault } from '../faults/fault.ts';
import type { ModelResponse } from '../server/request.ts';

type AnswerFault = Extract<RequestFault, { readonly kind: 'answer' }>;

/** `applied`: the answer of the server, if it was asked. `tls` has no answer: the connection fails. */
export function faultyAnswer(
  fault: AnswerFault & { readonly what: Exclude<AnswerFault['what'], 'tls'> },
  applied?: ModelResponse,
): ModelResponse {
  const { what, retryAfterSeconds } = fault;
  const html = { 'content-type': 'text/html' };
  switch (what) {
    case 'malformed':
      return { status: applied?.status ?? 200, headers: html, body: '<html><body>It works!</body></html>' };
    case 'truncated': {
      const { status, headers, body } = applied ?? { status: 200, headers: {}, body: '{"apiVersion":"v1","kind":"Status"}' };
      return { status, headers, body: body.slice(0, Math.floor(body.length / 2)) };
    }
    case 502:
      return { status: what, headers: html, body: '<html><body>Bad Gateway</body></html>' };
    case 429:
    case 500:
    case 503:
    case 504:
      return statusAnswer(what, reasons[what], `injected: ${reasons[what]}`, retryAfterSeconds);
    default:
      return what satisfies never;
  }
}

/** Answers a list or a watch with a version that is too old or too new. */
export function versionAnswer(kind: 'expired' | 'tooLarge'): ModelResponse {
  if (kind === 'expired') {
    const message = 'The provided continue parameter is too old to display a consistent list result.';
    return statusAnswer(410, 'Expired', message);
  }
  return statusAnswer(504, 'Timeout', 'Too large resource version: injected, current: 1', 1);
}

/** The last line of a watch whose version is gone. */
export const goneLine: string = JSON.stringify({
  type: 'ERROR',
  object: {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'too old resource version: 1 (2)',
    reason: 'Expired',
    code: 410,
  },
});

const reasons: Readonly<Record<429 | 500 | 503 | 504, string>> = {
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

function statusAnswer(code: number, reason: string, message: string, retryAfterSeconds?: number): ModelResponse {
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, ...details, code };
  const headers = { 'content-type': 'application/json' };
  return {
    status: code,
    headers: retryAfterSeconds === undefined ? headers : { ...headers, 'retry-after': String(retryAfterSeconds) },
    body: JSON.stringify(status),
  };
}
