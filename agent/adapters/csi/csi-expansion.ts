/** When the driver of a volume is to expand it on this machine: while it is mounted for a pod, or later, while pods use it. */
import type { TurnsByKey } from '../../../daemon/limits/turns-by-key.ts'
import { type CsiMount, csiSteps } from '../../pods/volumes/csi/csi-mount.ts'
import {
  afterExpansion,
  type ExpansionEnd,
  nextVolumeExpansion,
  noExpansions,
  withoutExpansion,
} from '../../pods/volumes/csi/expansion-state.ts'
import type { VolumeEvents } from '../../pods/volumes/csi/volume-events.ts'
import type { GrowingVolume, GrowthEnd, VolumeGrowth } from '../../pods/volumes/csi/volume-growth.ts'
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

type Attempt = { readonly end: ExpansionEnd; readonly error?: VolumeError }

export function csiExpansion(needs: CsiExpansionNeeds): CsiExpansion {
  const { growth, events, calls, patient, inTurn, monotonicMs } = needs
  let state = noExpansions

  const failedOnline = (volume: GrowingVolume, { message }: VolumeError) => {
    const failed = `NodeExpandVolume.NodeExpandVolume failed for volume "${volume.volume}" : ${message}`
    events.ofPod(volume.pod, { type: 'Warning', reason: 'VolumeResizeFailed', message: failed })
  }

  /** Throws other errors than VolumeError. */
  const attempt = async (key: string, volume: GrowingVolume, expand: () => Promise<GrowthEnd>): Promise<Attempt> => {
    const late = `driver ${volume.driver} takes longer than usual to expand the volume`
    try {
      const end = await patient.run(`expand ${key}`, late, () => inTurn(key, expand))
      return { end: end === 'later' ? 'later' : 'expanded' }
    } catch (error) {
      if (!(error instanceof VolumeError)) throw error
      return { end: error.message === late ? 'late' : 'failed', error }
    }
  }

  return {
    async onPlaced(volume, { claim, csi, isNew }) {
      if (csi.growth === undefined) return
      const key = csiKeyOf(volume)
      const place = { key, place: placeOf(volume), growth: csi.growth, isNew }
      const next = nextVolumeExpansion(state, place, monotonicMs())
      state = next.state
      if (next.step === 'none') return
      const grown: GrowingVolume = {
        ...{ volume: volume.volume, driver: volume.driver, claim: claim.claim, claimUID: claim.claimUID ?? '' },
        ...{ pod: podOf(csi.pod, volume.podUID), growth: csi.growth },
      }
      const { end, error } = await attempt(key, grown, () => growth.grow(grown, calls.expansion(volume, csi)))
      state = afterExpansion(state, place, next.step, end, monotonicMs())
      if (error === undefined) return
      if (next.step === 'mount') {
        throw new VolumeError(error.message, { step: csiSteps(csi.isBlock).expand, cause: error })
      }
      if (end === 'failed') failedOnline(grown, error)
    },
    forget(volume) {
      state = withoutExpansion(state, { key: csiKeyOf(volume), place: placeOf(volume) })
    },
  }
}

function placeOf({ podUID, volume }: PublishedVolume): string {
  return `${podUID}/${volume}`
}

function podOf(path: string, uid: string): GrowingVolume['pod'] {
  const [namespace = '', name = ''] = path.split('/')
  return { namespace, name, uid }
}
