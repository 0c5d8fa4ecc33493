// Declares the types of the files of node-forge that we import: the whole package takes ten times as long to load.
declare module 'node-forge/lib/asn1.js' {
  import type { asn1 } from 'node-forge';

  const value: typeof asn1;
  export = value;
}

declare module 'node-forge/lib/util.js' {
  const value: {
    /** Returns the bytes of an IP address as a text with one character per byte. */
    readonly bytesFromIP: (ip: string) => string;
  };
  export = value;
}
