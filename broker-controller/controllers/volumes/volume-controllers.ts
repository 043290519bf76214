/** The controllers of volumes and claims, with the index of pods that they share. */
import type { Loop } from '../../../daemon/run.ts'
import { attachDetach } from './attach/attach-detach.ts'
import type { VolumeBackupNeeds } from './backups/volume-backup-needs.ts'
import { volumeBackups } from './backups/volume-backups.ts'
import { claimPods } from './claim-pods.ts'
import { type EphemeralClaimsNeeds, ephemeralClaims } from './ephemeral-claims.ts'
import { localExpander } from './local-expander.ts'
import { localProvisioning } from './local-provisioner.ts'
import { type VolumeMoverNeeds, volumeMover } from './moves/volume-mover.ts'
import { poolLabelController } from './pool-labels.ts'
import { claimProtection, volumeProtection } from './protection-controllers.ts'
import { type VolumeBinderNeeds, volumeBinder } from './volume-binder.ts'
import { type VolumeDeletionNeeds, volumeDeletion } from './volume-deletion.ts'
import { volumeFill } from './volume-fill.ts'

export type VolumeControllerNeeds = VolumeBinderNeeds &
  EphemeralClaimsNeeds &
  VolumeDeletionNeeds &
  VolumeMoverNeeds &
  VolumeBackupNeeds

export function volumeControllers(needs: VolumeControllerNeeds): readonly Loop[] {
  const pods = claimPods(needs)
  return [
    { name: 'claim-pods', run: pods.run },
    volumeBinder(needs, pods),
    claimProtection(needs, pods),
    volumeProtection(needs),
    ephemeralClaims(needs, pods),
    poolLabelController(needs),
    localProvisioning(needs),
    localExpander(needs),
    volumeDeletion(needs),
    volumeMover(needs, pods),
    volumeBackups(needs, pods),
    volumeFill(needs),
    attachDetach(needs, pods),
  ]
}
