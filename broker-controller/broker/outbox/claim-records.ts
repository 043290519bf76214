/** The records of claims, with their proofs. The text of each is made once for the objects of the store, which do not change. */
import { type ClaimRecord, claimRecord } from '../../../api/storage/claim-record.ts'
import type { ProvenRecord } from '../../../api/storage/node-claim.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import type { ContentProver } from '../../store/checkpoints/content-proof.ts'

export function claimRecords({
  proofOfRecord,
}: Pick<ContentProver, 'proofOfRecord'>): (record: ClaimRecord) => ProvenRecord | undefined {
  const known = new WeakMap<PersistentVolumeClaim, { readonly of: PersistentVolume; readonly text?: string }>()
  return ({ claim, volume }) => {
    const before = known.get(claim)
    const text = before?.of === volume ? before.text : claimRecord({ claim, volume })
    known.set(claim, { of: volume, ...(text !== undefined && { text }) })
    return text === undefined ? undefined : { text, proof: proofOfRecord(text) }
  }
}
