/** The one file of node-forge that we use. Loading the whole of it costs an agent 11 MB. */
declare module 'node-forge/lib/asn1.js' {
  import type { asn1 } from 'node-forge'

  const forgeAsn1: Omit<typeof asn1, 'fromDer'> & {
    /** Texts of one character a byte, as everywhere in forge. */
    fromDer(bytes: string, options: { strict: boolean; decodeBitStrings: boolean; maxDepth: number }): asn1.Asn1
  }
  export default forgeAsn1
}
