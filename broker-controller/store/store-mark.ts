/**
 * The mark of a store in the serial numbers of the certificates that it issues. Signed by the authority, it tells for good,
 * and whatever any clock showed, which certificates are older than the store.
 */
import { createHash } from 'node:crypto'

/** Eight bytes: a first byte that keeps the number positive, and seven of a digest of the store's id. */
export function storeMark(storeID: string): Uint8Array {
  const digest = createHash('sha256').update(`store ${storeID}`).digest()
  return Uint8Array.of(0x42, ...digest.subarray(0, 7))
}

/** Was the certificate issued before this store, or by the authority's own command? `serialNumber`: hexadecimal. */
export function isOlderThanStore(serialNumber: string, storeID: string): boolean {
  const mark = Buffer.from(storeMark(storeID)).toString('hex')
  return !serialNumber.toLowerCase().startsWith(mark)
}
