/** The controllers of volumes and claims, with the index of pods that they share. */
import type { Loop } from '../../../daemon/run.ts'
import { claimPods } from './claim-pods.ts'
import { claimProtection, volumeProtection } from './protection-controllers.ts'
import { type VolumeBinderNeeds, volumeBinder } from './volume-binder.ts'

export function volumeControllers(needs: VolumeBinderNeeds): readonly Loop[] {
  const pods = claimPods(needs)
  return [
    { name: 'claim-pods', run: pods.run },
    volumeBinder(needs, pods),
    claimProtection(needs, pods),
    volumeProtection(needs),
  ]
}
