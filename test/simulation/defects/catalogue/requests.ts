// Mistakes in single requests: what they name, and what is made of an answer that is lost or bad.
import type { Defect, Edit } from '../defect.ts';

const write = 'cluster/request/write.ts';
const act = 'agent/turn/perform.ts';

const deleteBody = "body: text({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions, ...dryRunOf(options) }),";
const patchMetadata = 'body: text({ ...patch, metadata: { ...metadata, ...preconditionsOf(resource, target) } }),';
const sendDelete =
  "await deleteObject(env, resources.pods, { namespace, name, uid, resourceVersion }, { site: 'act.deletePod', timeoutMs });";
const fateUnknown = "error instanceof TransportFailure && error.mayBeApplied ? 'unknown' : 'failed'";

/** No claim ends because its request must be over. */
const claimsNeverOverdue: Edit = {
  file: 'engine/ledger/ledger.ts',
  find: 'const isOverdue = (claim: Claim): boolean => openForMs(claim) > unappliedClaimMs;',
  replace: 'const isOverdue = (claim: Claim): boolean => openForMs(claim) === Number.POSITIVE_INFINITY;',
};

/** A DELETE that names neither UID nor resourceVersion. */
export const deleteByName: Edit = {
  file: write,
  find: deleteBody,
  replace: "body: text({ apiVersion: 'v1', kind: 'DeleteOptions', ...(preconditions.uid === '' ? {} : {}), ...dryRunOf(options) }),",
};

/** An eviction that names nothing but the name. */
export const evictByName: Edit = {
  file: write,
  find: 'const deleteOptions = { preconditions: { uid }, ...dryRunOf(options) };',
  replace: 'const deleteOptions = { ...dryRunOf(options) };',
};

/** A patch of an object of that kind, or of any kind, whatever state it is in. */
export function patchByName(kind: 'StatefulSet' | 'Pod' | 'every'): Edit {
  const isFree = kind === 'every' ? "resource.kind !== ''" : `resource.kind === '${kind}'`;
  return {
    file: write,
    find: patchMetadata,
    replace: `body: text({ ...patch, metadata: { ...metadata, ...(${isFree} ? {} : preconditionsOf(resource, target)) } }),`,
  };
}

export const requestDefects: readonly Defect[] = [
  {
    id: 'delete-without-uid',
    title: 'the DELETE of a pod does not name its UID',
    edits: [
      {
        file: write,
        find: deleteBody,
        replace:
          "body: text({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { resourceVersion: preconditions.resourceVersion }, ...dryRunOf(options) }),",
      },
    ],
    breaks: ['S20'],
  },
  {
    id: 'delete-without-resource-version',
    title: 'the DELETE of a pod does not name its resourceVersion, so that one which is late still hits',
    edits: [
      {
        file: write,
        find: deleteBody,
        replace:
          "body: text({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: preconditions.uid }, ...dryRunOf(options) }),",
      },
    ],
    breaks: ['S20'],
  },
  {
    id: 'delete-by-name',
    title: 'the DELETE of a pod names nothing but the name',
    edits: [deleteByName],
    breaks: ['S20'],
  },
  {
    id: 'evict-by-name',
    title: 'an eviction does not name the UID of the pod',
    edits: [evictByName],
    breaks: ['S20'],
  },
  {
    id: 'scale-by-name',
    title: 'replicas are patched whatever state the StatefulSet is in',
    edits: [patchByName('StatefulSet')],
    breaks: ['S20'],
  },
  {
    id: 'revoke-by-name',
    title: 'the touch that revokes a claim hits whatever pod has the name',
    edits: [patchByName('Pod')],
    breaks: ['S20'],
  },
  {
    id: 'lost-reply-as-failure',
    title: 'a request without an answer counts as one that was not carried out, and its claim is dropped',
    edits: [{ file: act, find: fateUnknown, replace: "error instanceof TransportFailure ? 'failed' : 'failed'" }],
    breaks: ['S19'],
  },
  {
    id: 'lost-reply-as-success',
    title: 'a request without an answer counts as carried out, for ever',
    edits: [
      { file: act, find: fateUnknown, replace: "error instanceof TransportFailure && error.mayBeApplied ? 'done' : 'failed'" },
      claimsNeverOverdue,
    ],
    alsoWithout: 'the end of claims after 120 s, which makes up for it',
    breaks: ['L4', 'L12', 'unfinished'],
  },
  {
    id: 'server-error-as-refusal',
    title: 'a server that fails counts as one that refused, and the claim is dropped',
    edits: [
      {
        file: act,
        find: "isDenied || status < 500 ? 'refused' : 'unknown'",
        replace: "isDenied || status < 600 ? 'refused' : 'unknown'",
      },
    ],
    breaks: ['S19'],
  },
  {
    id: 'delete-again-blindly',
    title: 'a DELETE that failed is sent again, for whatever pod has the name by then',
    edits: [
      {
        file: act,
        find: sendDelete,
        replace: `const again = { site: 'act.deletePod', timeoutMs };
      try {
        await deleteObject(env, resources.pods, { namespace, name, uid, resourceVersion }, again);
      } catch {
        const now = await getObject(env, resources.pods, { namespace, name }, again);
        if (now !== undefined) {
          const { uid: nowUid = '', resourceVersion: nowVersion = '' } = now.metadata;
          await deleteObject(env, resources.pods, { namespace, name, uid: nowUid, resourceVersion: nowVersion }, again);
        }
      }`,
      },
    ],
    breaks: ['S6', 'S7', 'S19'],
  },
];
