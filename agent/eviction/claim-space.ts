/** The volumes of claims that fill a disk under pressure. No eviction frees their space, so an Event names them. Pure. */
import { byteText } from '../../api/text/byte-text.ts'

/** `claim`: `namespace/name`. */
export type ClaimSpace = { readonly claim: string; readonly usedBytes: number }

const mostNamed = 3
/** A volume below this part of the disk is not why it is full. */
const leastPart = 0.05

/** The message of the Event; undefined: the volumes are not why the disk is full. */
export function claimSpaceMessage(claims: readonly ClaimSpace[], capacityBytes: number): string | undefined {
  const large = claims.filter(({ usedBytes }) => usedBytes > 0 && usedBytes >= capacityBytes * leastPart)
  if (large.length === 0) return undefined
  const named = [...large]
    .sort((a, b) => b.usedBytes - a.usedBytes || (a.claim < b.claim ? -1 : 1))
    .slice(0, mostNamed)
    .map(({ claim, usedBytes }) => `${claim} (${byteText(usedBytes)})`)
  const more = large.length > named.length ? ` and ${large.length - named.length} more` : ''
  return `Volumes of claims fill the disk of this machine (${byteText(capacityBytes)}): ${named.join(', ')}${more}. No eviction frees their space: delete files in them, or move them to a disk of their own`
}
