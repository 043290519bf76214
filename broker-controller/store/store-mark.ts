/**
 * The mark of a store in the serial numbers of the certificates that it issues. It is signed by the authority, and shows which
 * certificates are older than the store, independent of clocks.
 */
import { createHash } from 'node:crypto'

/** Eight bytes: a first byte that keeps the number positive, and seven of a digest of the store's id. */
export function storeMark(storeID: string): Uint8Array {
  const digest = createHash('sha256').update(`store ${storeID}`).digest()
  return Uint8Array.of(0x42, ...digest.subarray(0, 7))
}

/** Whether the certificate was issued before this store, or by the authority's own command. `serialNumber`: hexadecimal. */
export function isOlderThanStore(serialNumber: string, storeID: string): boolean {
  const mark = Buffer.from(storeMark(storeID)).toString('hex')
  return !serialNumber.toLowerCase().startsWith(mark)
}
