// What an agent wrote, out of the API server's own log, in the words of the scenarios.
import type { AuditEvent } from '../../control-plane/audit.ts';

const verbs: Readonly<Record<string, string>> = { delete: 'DELETE', patch: 'PATCH', update: 'PUT', create: 'POST' };

/** Where the agent keeps what is its own: the ledger and the published decision, its Lease, Events. */
const own: ReadonlySet<string> = new Set(['configmaps', 'leases', 'events']);

/** The writes of a user in a namespace that succeeded, in order, without what the agent keeps for itself. */
export function writesOf(log: readonly AuditEvent[], namespace: string, user: string): readonly string[] {
  return log
    .filter(({ stage, verb, objectRef, user: by, responseStatus }) => {
      const isWrite = stage === 'ResponseComplete' && verbs[verb] !== undefined && (responseStatus?.code ?? 500) < 300;
      return isWrite && by.username === user && objectRef?.namespace === namespace && !own.has(objectRef.resource ?? '');
    })
    .map(describeWrite);
}

function describeWrite({ verb, objectRef, requestObject }: AuditEvent): string {
  const { resource = '', name = '', subresource } = objectRef ?? {};
  const target = `${verbs[verb]} ${resource}/${name}${subresource === undefined ? '' : `/${subresource}`}`;
  if (verb === 'delete') return target;
  return `${target} ${JSON.stringify(bodyOf(requestObject, verb, name))}`;
}

function bodyOf(body: unknown, verb: string, name: string): unknown {
  if (typeof body !== 'object' || body === null) return body;
  if (verb === 'update') {
    // Of a whole object that is written, the scenarios say what it is written for.
    const { status = {} } = body as { readonly status?: { readonly currentRevision?: string } };
    return { currentRevision: status.currentRevision?.replace(`${name}-`, '') };
  }
  const { metadata: _preconditions, ...rest } = body as Readonly<Record<string, unknown>>;
  return rest;
}
