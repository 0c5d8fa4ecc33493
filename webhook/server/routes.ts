// Routes paths to endpoints; no other file knows the router.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type NextFunction } from 'express';
import type { ServedEndpoint } from './exchange.ts';

/** Answers one request; `endpoint` is undefined for an unknown path. */
type Serve = (request: IncomingMessage, response: ServerResponse, endpoint: ServedEndpoint | undefined) => Promise<void>;

/** Matches paths exactly and answers every method, as grafana/rollout-operator does. */
export function routesOf(endpoints: readonly ServedEndpoint[], serve: Serve): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  for (const endpoint of endpoints) {
    app.all(endpoint.path, (request: IncomingMessage, response: ServerResponse) => serve(request, response, endpoint));
  }
  app.use((request: IncomingMessage, response: ServerResponse) => serve(request, response, undefined));
  // The router fails on a malformed URL. It recognises an error handler by its four parameters.
  app.use((_error: unknown, request: IncomingMessage, response: ServerResponse, _next: NextFunction) =>
    serve(request, response, undefined),
  );
  return app;
}
