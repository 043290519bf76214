/** When the driver of a volume is to expand it on this machine: while it is mounted for a pod, or later, while pods use it. */
import type { TurnsByKey } from '../../../daemon/limits/turns-by-key.ts'
import { type CsiGrowth, type CsiMount, csiSteps } from '../../pods/volumes/csi/csi-mount.ts'
import type { VolumeEvents } from '../../pods/volumes/csi/volume-events.ts'
import type { GrowingVolume, VolumeGrowth } from '../../pods/volumes/csi/volume-growth.ts'
import { type ClaimVolume, VolumeError } from '../../pods/volumes/volume-store.ts'
import { type CsiCalls, csiKeyOf } from './csi-calls.ts'
import type { PublishedVolume } from './csi-records.ts'
import type { PatientWork } from './patient-work.ts'

export type CsiExpansionNeeds = {
  readonly growth: VolumeGrowth
  readonly events: Pick<VolumeEvents, 'ofPod'>
  readonly calls: Pick<CsiCalls, 'expansion'>
  readonly patient: PatientWork
  readonly inTurn: TurnsByKey
  readonly monotonicMs: () => number
}

export interface CsiExpansion {
  /**
   * It is published. Throws VolumeError if it has just been mounted and cannot be expanded: the pod waits for that. One that is in use already
   * stays in use.
   */
  onPlaced(volume: PublishedVolume, placed: { claim: ClaimVolume; csi: CsiMount; isNew: boolean }): Promise<void>
  /** It is not mounted for a pod any more. */
  forget(volume: PublishedVolume): void
}

/** The kubelet has a back-off of up to two minutes. */
const retryMs = 50_000

export function csiExpansion(needs: CsiExpansionNeeds): CsiExpansion {
  const { growth, events, calls, patient, inTurn, monotonicMs } = needs
  /** The size to which it is not expanded once more, since this agent started. */
  const sizes = new Map<string, string>()
  const failedMs = new Map<string, number>()
  /** Volumes of pods that are mounted and wait for the expansion. */
  const unfinished = new Set<string>()

  const isDue = (key: string, { size, isAwaited }: CsiGrowth): boolean => {
    const has = sizes.get(key)
    // This agent has not seen it with a smaller size.
    if (has === undefined && !isAwaited) sizes.set(key, size)
    return has === undefined ? isAwaited : has !== size
  }

  const failedOnline = (volume: GrowingVolume, { message }: VolumeError) => {
    const failed = `NodeExpandVolume.NodeExpandVolume failed for volume "${volume.volume}" : ${message}`
    events.ofPod(volume.pod, { type: 'Warning', reason: 'VolumeResizeFailed', message: failed })
  }

  return {
    async onPlaced(volume, { claim, csi, isNew }) {
      const key = csiKeyOf(volume)
      if (csi.growth === undefined || !isDue(key, csi.growth)) return
      const place = `${volume.podUID}/${volume.volume}`
      const isMount = isNew || unfinished.has(place)
      if (!isMount && monotonicMs() - (failedMs.get(key) ?? Number.NEGATIVE_INFINITY) < retryMs) return
      const grown: GrowingVolume = {
        ...{ volume: volume.volume, driver: volume.driver, claim: claim.claim, claimUID: claim.claimUID ?? '' },
        ...{ pod: podOf(csi.pod, volume.podUID), growth: csi.growth },
      }
      const late = `driver ${volume.driver} takes longer than usual to expand the volume`
      try {
        const end = await patient.run(`expand ${key}`, late, () =>
          inTurn(key, () => growth.grow(grown, calls.expansion(volume, csi))),
        )
        if (end !== 'later') sizes.set(key, csi.growth.size)
        unfinished.delete(place)
      } catch (error) {
        if (!(error instanceof VolumeError)) throw error
        if (isMount) {
          unfinished.add(place)
          throw new VolumeError(error.message, {
            step: csiSteps(csi.isBlock).expand,
            cause: error,
          })
        }
        if (error.message === late) return
        failedMs.set(key, monotonicMs())
        failedOnline(grown, error)
      }
    },
    forget(volume) {
      for (const known of [sizes, failedMs]) known.delete(csiKeyOf(volume))
      unfinished.delete(`${volume.podUID}/${volume.volume}`)
    },
  }
}

function podOf(path: string, uid: string): GrowingVolume['pod'] {
  const [namespace = '', name = ''] = path.split('/')
  return { namespace, name, uid }
}
