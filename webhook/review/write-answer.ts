// Encodes an answer as an AdmissionReview of bounded size.
import { boundedText } from './bounded-text.ts';
import type { Answer, Review } from './review.ts';

/** In bytes of UTF-8. API servers copy the message into the client's error, and cut warnings themselves. */
const maxMessageBytes = 1024;
const maxWarnings = 16;
const maxWarningBytes = 1024;
/** A key is the name part of a qualified name. */
const auditKey = /^[A-Za-z\d](?:[-.\w]{0,61}[A-Za-z\d])?$/;
const maxAuditAnnotations = 16;
const maxAuditValueBytes = 1024;
/** A larger patch is not a small correction any more. */
const maxPatchOperations = 10;

/**
 * Returns the AdmissionReview as JSON: the apiVersion and uid of the review, and the answer. Long messages, warnings and audit annotations
 * are cut; excess ones, and annotations with an invalid key, are dropped. Throws RangeError if the patch has more than 10 operations, and
 * TypeError if a value is not JSON, because a partial patch has another meaning.
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

/** Returns `response.status`, a `meta/v1` Status; undefined for an answer without one. */
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
