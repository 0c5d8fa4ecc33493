// Removes undefined members from objects, so that a member is either absent or has a value.

/** The type of an object after its undefined members are dropped: members that may be undefined become optional. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Returns a copy of the object without its undefined members, in the same order. Nested objects stay as they are. */
export function defined<const T extends object>(object: T): Defined<T> {
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(object)) {
    const value = object[key as keyof T];
    if (value !== undefined) result[key] = value;
  }
  return result as Defined<T>;
}

/**
 * Returns a copy of the object with these members, which may be new. In Node.js 20, each result of `{ ...object, added }` has another hidden
 * class, so that every later read is slow. An object spread that only replaces members is faster than this function.
 */
export function extended<Base extends object, Added extends object>(object: Base, members: Added): Base & Added {
  return Object.assign({}, object, members);
}
