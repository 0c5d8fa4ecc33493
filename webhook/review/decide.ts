// One review, answered whatever happens: the handler's answer, or what stands in for it when there is none in time.
import type { Log } from '../../cluster/env.ts';
import { boundedText } from './bounded-text.ts';
import type { Answer, Call, Endpoint, Review } from './review.ts';
import { writeAnswer } from './write-answer.ts';

/**
 * Why `onFailure` answered: the handler rejected, was not done at the deadline, or was not asked because too much is going on already; or the
 * client had gone by then, and nobody hears the answer.
 */
export type Failure = 'error' | 'deadline' | 'overload' | 'client-gone';

export interface Decided {
  readonly answer: Answer;
  /** The answer as AdmissionReview. */
  readonly text: string;
  readonly failure?: Failure;
}

interface DecideOptions {
  readonly endpoint: Endpoint;
  readonly call: Call;
  /** Whether the process is busy enough. */
  readonly isOverloaded: boolean;
  readonly log: Log;
}

/** Seconds after which somebody who met an overload may come again: short, for what causes it are bursts such as a node that is drained. */
const overloadRetrySeconds = 1;

/**
 * Asks the endpoint, and answers by its `onFailure` when it rejects, is late or may not be asked. Handlers learn of the deadline by `call.signal`;
 * what they still do after it is not waited for. Rejects only when `onFailure` itself throws, or answers with what cannot be written.
 */
export async function decide(review: Review, { endpoint, call, isOverloaded, log }: DecideOptions): Promise<Decided> {
  if (isOverloaded) {
    return failed(review, endpoint, { failure: 'overload', problem: 'the webhook has too many requests in hand', isTemporary: true });
  }
  const over = aborted(call.signal);
  try {
    const answer = await Promise.race([handled(review, endpoint, call), over.promise]);
    if (answer === 'aborted') {
      const failure = call.signal.reason === clientGone ? 'client-gone' : 'deadline';
      return failed(review, endpoint, { failure, problem: 'the webhook came to no decision in time', isTemporary: true });
    }
    return { answer, text: writeAnswer(review, answer) };
  } catch (error) {
    // The error may name addresses, objects of other namespaces, or worse: the log has it, and the person who is refused has the uid.
    log.error('an admission request could not be decided', {
      path: endpoint.path,
      uid: boundedText(review.uid, 256),
      error: boundedText(error instanceof Error ? `${error.name}: ${error.message}` : String(error), 1024),
    });
    const problem = `the webhook failed to decide: its log says why, beside the uid ${boundedText(review.uid, 64)}`;
    return failed(review, endpoint, { failure: 'error', problem, isTemporary: false });
  } finally {
    over.forget();
  }
}

/** Reason of the abort when the client has gone; any other reason is the deadline. */
export const clientGone = 'the client has gone';

/** Also a handler that throws before it is asynchronous. */
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

/** With `isTemporary`, a denial is one that `kubectl drain` and controllers try again. */
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
