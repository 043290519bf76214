/** VolumeRestrictions: a claim that is for one pod alone (ReadWriteOncePod) has no second one, on any node. */
import type { KnownClaim } from './volume-cache.ts'

const onePod = 'ReadWriteOncePod'

export const takenText = `node has pod using PersistentVolumeClaim with the same name and ${onePod} access mode`

export function isForOnePod({ spec }: KnownClaim): boolean {
  return spec?.accessModes?.includes(onePod) === true
}
