// The order of resource versions: which of two states of one kind of object is the later one.

const wellFormed = /^(?:0|[1-9][0-9]*)$/;

/**
 * Below zero when `a` is older than `b`, 0 when they are the same, above zero when it is newer; undefined when they cannot be compared, because
 * one is no decimal number. Since Kubernetes 1.35 resource versions of one kind are promised to be unsigned integers of any length that grow
 * with time (KEP-5504); older servers on etcd keep to it without a promise. Extension servers may not.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!wellFormed.test(a) || !wellFormed.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** The newest resource version seen so far. It never goes back; what cannot be compared replaces it, because nothing better is known. */
export class HighWaterMark {
  #value: string | undefined;

  constructor(value?: string) {
    this.#value = value;
  }

  get value(): string | undefined {
    return this.#value;
  }

  /** Reports whether the version is known to be older than the newest one seen. */
  isBehind(resourceVersion: string): boolean {
    return this.#value !== undefined && (compareResourceVersions(resourceVersion, this.#value) ?? 0) < 0;
  }

  /** Reports whether everything up to the version has been seen. False when that cannot be told. */
  covers(resourceVersion: string): boolean {
    return this.#value !== undefined && (compareResourceVersions(this.#value, resourceVersion) ?? -1) >= 0;
  }

  raise(resourceVersion: string): void {
    if (!this.isBehind(resourceVersion)) this.#value = resourceVersion;
  }
}
