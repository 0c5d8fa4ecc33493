// Size limits of files, standard input and Git.

/** Bytes of one file. Kubernetes stores objects of up to 1.5 MiB; a rendered chart has many of them. */
export const maxFileBytes = 16 * 1_048_576;

/** Bytes of all files of one source. */
export const maxTotalBytes = 128 * 1_048_576;

/** Document files of one source. */
export const maxFileCount = 20_000;

/** Depth of directories. */
export const maxDepth = 64;
