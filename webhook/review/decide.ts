// Answers one review before its deadline: with the answer of the endpoint or of its `onFailure`, as an AdmissionReview of bounded size.
import type { Log } from '../../cluster/env.ts';
import { type Answer, boundedText, type Call, type Endpoint, type Review } from './review.ts';

/**
 * The reason of an answer without a decision. `onFailure` answered, because the endpoint rejected or was late, the process is overloaded, or
 * the client disconnected. Or the endpoint let the request pass, because a read failed.
 */
export type Failure = 'error' | 'deadline' | 'overload' | 'client-gone' | 'unread';

export interface Decided {
  readonly answer: Answer;
  readonly text: string;
  readonly failure?: Failure;
}

interface DecideOptions {
  readonly endpoint: Endpoint;
  readonly call: Call;
  readonly isOverloaded: boolean;
  readonly log: Log;
}

/** Delay of a retry after an overload or a missed deadline. It is short, because an overload ends with its cause, for example a drain. */
const overloadRetrySeconds = 1;

/**
 * Calls the endpoint and returns its answer. Returns the answer of `onFailure` if the endpoint rejects, if `call.signal` is aborted, or if
 * the process is overloaded. Rejects only if `onFailure` throws or its answer cannot be encoded.
 */
export async function decide(review: Review, { endpoint, call, isOverloaded, log }: DecideOptions): Promise<Decided> {
  if (isOverloaded) {
    return failed(review, endpoint, { failure: 'overload', problem: 'the webhook is overloaded', isTemporary: true });
  }
  const over = aborted(call.signal);
  try {
    const answer = await Promise.race([handled(review, endpoint, call), over.promise]);
    if (answer === 'aborted') {
      const failure = call.signal.reason === clientGone ? 'client-gone' : 'deadline';
      return failed(review, endpoint, { failure, problem: 'the webhook did not decide in time', isTemporary: true });
    }
    return { answer, text: writeAnswer(review, answer), ...(answer.isUnjudged ? { failure: 'unread' } : {}) };
  } catch (error) {
    // The error may name addresses or objects of other namespaces. Only the log gets the error; the requester gets the uid.
    log.error('an admission request could not be decided', {
      path: endpoint.path,
      uid: boundedText(review.uid, 256),
      error: boundedText(String(error), 1024),
    });
    const problem = `the webhook failed to decide; its log has the cause under the uid ${boundedText(review.uid, 64)}`;
    return failed(review, endpoint, { failure: 'error', problem, isTemporary: false });
  } finally {
    over.forget();
  }
}

/** The reason of an abort if the client disconnected. Any other reason means the deadline. */
export const clientGone = 'the client disconnected';

/** Turns a synchronous exception of the endpoint into a rejection. */
async function handled(review: Review, { handle }: Endpoint, call: Call): Promise<Answer> {
  return handle(review, call);
}

function aborted(signal: AbortSignal): { readonly promise: Promise<'aborted'>; readonly forget: () => void } {
  let forget = (): void => undefined;
  const promise = new Promise<'aborted'>((resolve) => {
    const finish = (): void => resolve('aborted');
    if (signal.aborted) finish();
    signal.addEventListener('abort', finish, { once: true });
    forget = () => signal.removeEventListener('abort', finish);
  });
  return { promise, forget };
}

/** Returns the answer of `onFailure`. With `isTemporary`, a denial has code 429, so that `kubectl drain` and controllers retry. */
function failed(
  review: Review,
  { onFailure }: Endpoint,
  { failure, problem, isTemporary }: { readonly failure: Failure; readonly problem: string; readonly isTemporary: boolean },
): Decided {
  const given = onFailure(review, problem);
  const answer =
    given.allowed || !isTemporary
      ? given
      : { ...given, code: 429, reason: 'TooManyRequests', retryAfterSeconds: given.retryAfterSeconds ?? overloadRetrySeconds };
  return { answer, text: writeAnswer(review, answer), failure };
}

/** Limit in bytes of UTF-8. API servers copy the message into the error of the client. */
const maxMessageBytes = 1024;
const maxWarnings = 16;
const maxWarningBytes = 1024;
/** A key is the name part of a qualified name. */
const auditKey = /^[A-Za-z\d](?:[-.\w]{0,61}[A-Za-z\d])?$/;
const maxAuditAnnotations = 16;
const maxAuditValueBytes = 1024;
/** Endpoints correct a few fields. A larger patch is a defect. */
const maxPatchOperations = 10;

/**
 * Returns the AdmissionReview as JSON. Cuts long texts, and drops excess warnings and audit annotations. Throws RangeError for a patch of
 * more than 10 operations, because a cut patch would have another meaning. Throws TypeError for values that are not JSON.
 */
export function writeAnswer({ apiVersion, uid }: Pick<Review, 'apiVersion' | 'uid'>, answer: Answer): string {
  const { allowed, patch = [] } = answer;
  if (patch.length > maxPatchOperations) {
    throw new RangeError(`the patch has ${patch.length} operations: an answer may have at most ${maxPatchOperations}`);
  }
  const status = statusOf(answer);
  const warnings = (answer.warnings ?? []).slice(0, maxWarnings).map((warning) => boundedText(warning, maxWarningBytes));
  const annotations = auditAnnotationsOf(answer);
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion,
    response: {
      uid,
      allowed,
      ...(status === undefined ? {} : { status }),
      ...(patch.length === 0 ? {} : { patch: Buffer.from(JSON.stringify(patch)).toString('base64'), patchType: 'JSONPatch' }),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(annotations === undefined ? {} : { auditAnnotations: annotations }),
    },
  });
}

/** Returns `response.status`, a `meta/v1` Status; undefined if the answer sets no field of it. */
function statusOf({ code, reason, message, retryAfterSeconds }: Answer): object | undefined {
  if (code === undefined && reason === undefined && message === undefined && retryAfterSeconds === undefined) return undefined;
  return {
    metadata: {},
    ...(message === undefined ? {} : { message: boundedText(message, maxMessageBytes) }),
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } }),
    ...(code === undefined ? {} : { code }),
  };
}

function auditAnnotationsOf({ auditAnnotations = {} }: Answer): Readonly<Record<string, string>> | undefined {
  const entries = Object.entries(auditAnnotations)
    .filter(([key]) => auditKey.test(key))
    .slice(0, maxAuditAnnotations)
    .map(([key, value]) => [key, boundedText(value, maxAuditValueBytes)] as const);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
