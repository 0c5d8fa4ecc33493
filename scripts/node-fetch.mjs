// Replaces the package node-fetch in the bundle by the fetch of Node.js. The package contains an old URL parser, which adds 300 KB and
// prints a deprecation warning on Node.js 21 and later.
export const { Headers, Request, Response, FormData } = globalThis;
export class AbortError extends Error {}
export class FetchError extends Error {}
// biome-ignore lint/style/noDefaultExport: the package has a default export.
export default globalThis.fetch;
