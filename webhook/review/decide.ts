// Answers one review in time: with the answer of the handler, or with the answer for failures.
import type { Log } from '../../cluster/env.ts';
import { boundedText } from './bounded-text.ts';
import type { Answer, Call, Endpoint, Review } from './review.ts';
import { writeAnswer } from './write-answer.ts';

/**
 * Why `onFailure` answered: the handler rejected, missed the deadline, or was not called because of an overload; or the client
 * disconnected.
 */
export type Failure = 'error' | 'deadline' | 'overload' | 'client-gone';

export interface Decided {
  readonly answer: Answer;
  /** The answer as an AdmissionReview. */
  readonly text: string;
  readonly failure?: Failure;
}

interface DecideOptions {
  readonly endpoint: Endpoint;
  readonly call: Call;
  /** True if the process is overloaded. */
  readonly isOverloaded: boolean;
  readonly log: Log;
}

/** Seconds after which a client may retry after an overload: short, because bursts such as a drain cause it. */
const overloadRetrySeconds = 1;

/**
 * Calls the endpoint, and answers by its `onFailure` if it rejects, is late or may not be called. `call.signal` tells handlers about the
 * deadline; later work is not awaited. Rejects only if `onFailure` throws or its answer cannot be encoded.
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
    return { answer, text: writeAnswer(review, answer) };
  } catch (error) {
    // The error may name addresses or objects of other namespaces: it goes to the log, and the requester gets the uid.
    log.error('an admission request could not be decided', {
      path: endpoint.path,
      uid: boundedText(review.uid, 256),
      error: boundedText(error instanceof Error ? `${error.name}: ${error.message}` : String(error), 1024),
    });
    const problem = `the webhook failed to decide; its log has the cause under the uid ${boundedText(review.uid, 64)}`;
    return failed(review, endpoint, { failure: 'error', problem, isTemporary: false });
  } finally {
    over.forget();
  }
}

/** Reason of the abort if the client disconnected; any other reason is the deadline. */
export const clientGone = 'the client disconnected';

/** Also catches handlers that throw synchronously. */
async function handled(review: Review, { handle }: Endpoint, call: Call): Promise<Answer> {
  return handle(review, call);
}

function aborted(signal: AbortSignal): { readonly promise: Promise<'aborted'>; readonly forget: () => void } {
  let forget = (): void => undefined;
  const promise = new Promise<'aborted'>((resolve) => {
    const tell = (): void => resolve('aborted');
    if (signal.aborted) tell();
    signal.addEventListener('abort', tell, { once: true });
    forget = () => signal.removeEventListener('abort', tell);
  });
  return { promise, forget };
}

/** With `isTemporary`, `kubectl drain` and controllers retry the denial. */
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
