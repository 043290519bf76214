/** Where the data of a PersistentVolume is. Pure. */
import type { PersistentVolume } from './persistent-volume.ts'
import { localProvisioner, poolAnnotation } from './pools.ts'
import { volumeAnnotations } from './volume-names.ts'

/** The pool that the provisioner made it in; undefined: it is not of a pool. */
export function poolOfVolume({ metadata, spec }: PersistentVolume): string | undefined {
  const { annotations = {} } = metadata
  const isOurs = spec?.local !== undefined && annotations[volumeAnnotations.provisionedBy] === localProvisioner
  return isOurs ? annotations[poolAnnotation] : undefined
}
