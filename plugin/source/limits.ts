// How much is read from files, standard input and Git: enough for any installation, little enough to answer at once.

/** Of one file. The largest object that Kubernetes stores has 1.5 MiB; rendered charts put many into one file. */
export const maxFileBytes = 16 * 1_048_576;

/** Of all files of one source together. */
export const maxTotalBytes = 128 * 1_048_576;

/** Files of one source that may hold documents. */
export const maxFileCount = 20_000;

/** Folders below one another. */
export const maxDepth = 64;
