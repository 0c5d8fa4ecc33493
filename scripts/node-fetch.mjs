// Takes the place of the package node-fetch in the bundle: what Node.js has itself. The package brings an old URL parser, which prints a
// deprecation warning on Node.js 21 and later, and 300 KB.
export const { Headers, Request, Response, FormData } = globalThis;
export class AbortError extends Error {}
export class FetchError extends Error {}
// biome-ignore lint/style/noDefaultExport: as the package has it.
export default globalThis.fetch;
