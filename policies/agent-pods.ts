// How the pods of the agent's own Deployment are named: what is never judged, and what the API server never asks about, is told by one pattern.

/** After the name of the Deployment: the hash of its template, and chance. A StatefulSet that only begins like it has pods with an ordinal. */
const suffix = '-[a-z0-9]{5,10}-[a-z0-9]{5}';

/** A pattern, for JavaScript and for CEL alike, of the names of all pods of a Deployment. */
export function podNamesOf(deployment: string): string {
  return `^${deployment.replaceAll('.', '[.]')}${suffix}$`;
}
