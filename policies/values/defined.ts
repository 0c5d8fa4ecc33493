// Removes undefined members from objects, so that a member is either absent or has a value.

/** The type of an object after its undefined members are dropped: members that may be undefined become optional. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Returns a copy of the object without its undefined members, in the same order. Nested objects stay as they are. */
export function defined<const T extends object>(object: T): Defined<T> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(object)) if (value !== undefined) result[key] = value;
  return result as Defined<T>;
}
