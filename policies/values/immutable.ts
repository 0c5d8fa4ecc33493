// Makes the types of parsed values readonly.

/** The type with readonly fields and lists at every depth. */
export type Immutable<T> = T extends object ? { readonly [Key in keyof T]: Immutable<T[Key]> } : T;
