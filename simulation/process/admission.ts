// Models the call of the API server to the webhooks of the agents: it asks one ready process, and applies the failure policy.

import type { Answer, Review } from '../../webhook/review/review.ts';
import { objectReview, type ReviewedRequest } from '../cluster/admitted.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Actor } from '../server/request.ts';
import { type Life, latencyMs } from './life.ts';

/** A process whose webhook answers reviews. */
export interface Reviewer {
  readonly life: Life;
  readonly review: (review: Review) => Promise<Answer>;
}

interface AdmissionOptions {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  readonly seed: number;
  /** Returns the ready processes, which the Service of the webhook selects. */
  readonly reviewers: () => readonly Reviewer[];
  readonly note: (...parts: readonly (string | number)[]) => void;
}

/** The timeout of the API server (install/webhooks.ts). */
const timeoutMs = 5_000;

export function createAdmission({ scheduler, seed, reviewers, note }: AdmissionOptions) {
  let count = 0;

  /** Calls back once: with the actor of the admitted request, or with undefined for a denial. */
  const ask = (request: ReviewedRequest, decided: (actor: Actor | undefined) => void): void => {
    count += 1;
    const key = `review ${count}`;
    const sentAtMs = scheduler.nowMs();
    let isOver = false;
    const settle = (outcome: string, actor: Actor | undefined): void => {
      if (isOver) return;
      isOver = true;
      cancelTimeout();
      note(key, request.verb, request.name, outcome);
      decided(actor);
    };
    // Evictions have the failure policy `Fail`, and deletions `Ignore`.
    const fails = (): void => (request.verb === 'evictPod' ? settle('failed', undefined) : settle('ignored', request.actor));
    const cancelTimeout = scheduler.after(timeoutMs, fails);
    const ready = reviewers();
    const one = ready[Math.floor(draw(seed, `${key} goes to`) * ready.length)];
    const way = (direction: string): number => latencyMs(draw(seed, `${key} ${direction}`));
    const answered = (answer: Answer): void => {
      if (!answer.allowed) settle('denied', undefined);
      else {
        const isJudged = answer.auditAnnotations?.['outcome'] === 'allow';
        const admission = { by: one?.life.name ?? '', sentAtMs, verb: request.verb, uid: request.pod.metadata.uid, isJudged };
        settle(isJudged ? 'allowed' : 'passed', { ...request.actor, admission });
      }
    };
    if (one === undefined) {
      scheduler.after(way('to'), fails);
      return;
    }
    scheduler.after(way('to'), () =>
      one.life.time.take(() => {
        void one.review(objectReview(request, key)).then((answer) => {
          if (one.life.time.isAlive()) scheduler.after(way('from'), () => answered(answer));
        });
      }),
    );
  };
  return { ask };
}
