/** Whether the volumes that were chosen for a pod are bound by now (checkBindings of Kubernetes' volume binder). */
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { keyText } from '../../store/informer.ts'
import type { NodeAllocation } from '../node-usage.ts'
import type { Reservation } from './reservations.ts'
import { isFullyBound, type KnownClaim, type KnownVolume, type VolumeBinding, type VolumeView } from './volume-cache.ts'
import { isReachable } from './volume-candidates.ts'

export type ReservationState =
  | { readonly state: 'ready' }
  | { readonly state: 'waiting' }
  /** The pod needs another decision. */
  | { readonly state: 'failed'; readonly message: string }

/** As they are stored: promises are not meant here. */
export type StoredFacts = Pick<VolumeView, 'claim' | 'volume'>

const waiting: ReservationState = { state: 'waiting' }
const ready: ReservationState = { state: 'ready' }

export function reservationState(
  reservation: Reservation,
  stored: StoredFacts,
  node: NodeAllocation | undefined,
  nowMs: number,
): ReservationState {
  const { nodeName, volumes, untilMs } = reservation
  if (node === undefined) return failed(`failed to get node "${nodeName}": node "${nodeName}" not found`)
  const { bindings, provisions } = volumes
  const isNew = isAsWritten(reservation)
  let isPending = false
  for (const state of [
    ...bindings.map((one) => stateOfBinding(one, stored, node, isNew)),
    ...provisions.map((claim) => stateOfProvision(claim, stored, node, isNew)),
  ]) {
    if (state.state === 'failed') return state
    if (state.state === 'waiting') isPending = true
  }
  if (!isPending) return ready
  return nowMs < untilMs ? waiting : failed('context deadline exceeded')
}

type IsAsWritten = (object: KnownClaim | KnownVolume) => boolean

/** Whether the watch has delivered what this program wrote. */
function isAsWritten({ versions }: Reservation): IsAsWritten {
  return ({ metadata }) => Number(metadata.resourceVersion) >= (versions.get(metadata.uid) ?? 0)
}

function stateOfBinding(
  { claim, volume }: VolumeBinding,
  stored: StoredFacts,
  node: NodeAllocation,
  isNew: IsAsWritten,
): ReservationState {
  const { name } = volume.metadata
  const presentVolume = stored.volume(name)
  if (presentVolume === undefined)
    return failed(`failed to check binding: could not find v1.PersistentVolume "${name}"`)
  const present = sameClaim(claim, stored)
  if (present === undefined) return failed(`failed to check binding: ${missingText(claim)}`)
  if (!isNew(presentVolume)) return waiting
  if (!isReachable(presentVolume, node)) return failed(unreachableText(presentVolume, node))
  if (!presentVolume.spec?.claimRef?.uid) return failed(`ClaimRef got reset for pv "${name}"`)
  return isFullyBound(present) ? ready : waiting
}

function stateOfProvision(
  claim: KnownClaim,
  stored: StoredFacts,
  node: NodeAllocation,
  isNew: IsAsWritten,
): ReservationState {
  const present = sameClaim(claim, stored)
  if (present === undefined) return failed(`failed to check provisioning pvc: ${missingText(claim)}`)
  if (!isNew(present)) return waiting
  const { metadata, spec } = present
  if (metadata.annotations === undefined) return failed(`selectedNode annotation reset for PVC "${metadata.name}"`)
  if (metadata.annotations[volumeAnnotations.selectedNode] !== node.name) {
    return failed(`provisioning failed for PVC "${metadata.name}"`)
  }
  if (!spec?.volumeName) return waiting
  const volume = stored.volume(spec.volumeName)
  // It may not be delivered yet; if it is gone, the claim is unbound in the end.
  if (volume === undefined) return waiting
  if (!isReachable(volume, node)) return failed(unreachableText(volume, node))
  return isFullyBound(present) ? ready : waiting
}

/** Another one of its name has nothing of what was written. */
function sameClaim({ metadata }: KnownClaim, stored: StoredFacts): KnownClaim | undefined {
  const present = stored.claim(keyText(metadata))
  return present?.metadata.uid === metadata.uid ? present : undefined
}

function failed(reason: string): ReservationState {
  return { state: 'failed', message: `binding volumes: ${reason}` }
}

function missingText({ metadata }: KnownClaim): string {
  return `could not find v1.PersistentVolumeClaim "${keyText(metadata)}"`
}

function unreachableText({ metadata }: KnownVolume, { name }: NodeAllocation): string {
  return `pv "${metadata.name}" node affinity doesn't match node "${name}": no matching NodeSelectorTerms`
}
