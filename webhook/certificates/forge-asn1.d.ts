// Declares the types of the one file of node-forge that we import: the whole package takes ten times as long to load.
declare module 'node-forge/lib/asn1.js' {
  import type { asn1 } from 'node-forge';

  const value: typeof asn1;
  export = value;
}
