// Runs the model of the API server in virtual time, and replaces responses by failures.
import { projectKinds } from '../../simulation/server/kinds.ts';
import { moreKinds } from './kinds.ts';
import { ModelApi } from './model-server.ts';
import type { Served, ServedRequest, VirtualEnv } from './virtual-env.ts';

/** Answers the requests of the environment. Besides the kinds of Kubernetes it serves only the named plurals. */
export class ObjectsServer extends ModelApi {
  /** Returns a failure to answer with; undefined passes the request to the model. */
  fault: ((request: ServedRequest) => Served | undefined) | undefined;
  readonly #writes: string[] = [];

  constructor(env: VirtualEnv, plurals: readonly string[]) {
    super({ env, kinds: [...projectKinds, ...moreKinds].filter(({ plural }) => plurals.includes(plural)) });
    env.replaceServer((request) => this.answer(request));
  }

  answer(request: ServedRequest): Served | Promise<Served> {
    const fault = this.fault?.(request);
    if (fault !== undefined) return fault;
    if (request.method !== 'GET') this.#writes.push(`${request.method} ${request.pathname} ${request.site}`);
    return this.serve(request);
  }

  /** Method, path and site of every write that the server received. */
  writes(): readonly string[] {
    return this.#writes;
  }
}
