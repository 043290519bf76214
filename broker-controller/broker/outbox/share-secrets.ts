/** Which claims need a Secret, because it has the user of the share that their volume is on, or is of the CSI driver of their volume. */
import { shareOfVolume } from '../../../api/storage/shares.ts'
import { keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import { nodeCsiVolume, secretsOfCsi } from './csi/node-csi-volume.ts'
import { secretOfShare } from './node-claims.ts'

type Changed = StoredObject<'persistentvolumes'> | undefined

export interface ShareSecretsIndex {
  /** Takes in a change of a PersistentVolume. */
  update(present: Changed, previous: Changed): void
  /** Keys as `namespace/name`, of the claims that the volumes are for. */
  claimsWith(secret: string): readonly string[]
}

export function shareSecretsIndex(): ShareSecretsIndex {
  /** By key of the Secret: the keys of claims, by name of the volume. */
  const users = new Map<string, Map<string, string>>()
  return {
    update(present, previous) {
      for (const secret of secretsOf(previous)) {
        users.get(secret)?.delete(previous?.metadata.name ?? '')
        if (users.get(secret)?.size === 0) users.delete(secret)
      }
      const claim = present?.spec?.claimRef
      if (present === undefined || claim === undefined) return
      for (const secret of secretsOf(present)) {
        const volumes = users.get(secret) ?? new Map<string, string>()
        users.set(secret, volumes.set(present.metadata.name, keyText(claim)))
      }
    },
    claimsWith: (secret) => [...(users.get(secret)?.values() ?? [])],
  }
}

function secretsOf(volume: Changed): readonly string[] {
  if (volume === undefined) return []
  return [...secretOfShare(shareOfVolume(volume)), ...secretsOfCsi(nodeCsiVolume(volume, {}, {}))]
}
