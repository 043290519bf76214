/** What the claims of a pod mean for its place, before any node is looked at (PreFilter of Kubernetes' volume plugins). */
import { backupOf, restoreOf } from '../../../api/backups/volume-backup.ts'
import type { Pod } from '../../../api/pod.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import type { LabelMatcher } from '../../../api/selectors.ts'
import { claimsOfPod, isForOnePod, isMadeForPod, type PodClaim } from '../../../api/storage/pod-claims.ts'
import { classOfClaim, isDelayed, requestOfClaim } from '../../../api/storage/volume-matching.ts'
import { moveOf } from '../../../api/storage/volume-move.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'
import { keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import type { NodeAllocation } from '../node-usage.ts'
import {
  claimKeyOf,
  isFullyBound,
  type KnownClaim,
  type KnownVolume,
  usesClaims,
  type VolumeView,
} from './volume-cache.ts'
import { type Candidates, candidatesFor, noCandidates } from './volume-candidates.ts'
import { exceedsLimit, limitedVolume } from './volume-limits.ts'
import { type ZoneRule, zoneRulesOf } from './volume-zone.ts'

export type VolumePlugin = 'VolumeRestrictions' | 'NodeVolumeLimits' | 'VolumeBinding' | 'VolumeZone'

/** No node can take the pod while this stands. */
export type PodRefusal = { readonly plugin: VolumePlugin; readonly reason: string }

/** A claim that is bound once the node of its pod is known. */
export type DelayedClaim = Candidates & {
  readonly claim: KnownClaim
  readonly storageClass: StoredObject<'storageclasses'>
  /** A volume is being made for it on that node. */
  readonly selectedNode: string | undefined
  /** Where there is room for a volume that is made for it, by labels of nodes; undefined: its driver does not report that. */
  readonly room: readonly LabelMatcher[] | undefined
}

export type PodVolumes =
  | { readonly refused: PodRefusal }
  | {
      readonly refused?: undefined
      /** undefined: a volume that does not exist. */
      readonly bound: readonly (KnownVolume | undefined)[]
      /** The smallest claim first, so that each gets the smallest volume that fits. */
      readonly delayed: readonly DelayedClaim[]
      /** Whether another pod has one of its claims that are for one pod alone. Trials of preemption change the answer. */
      readonly isTaken: () => boolean
      readonly zones: readonly ZoneRule[]
      /** Whether the node would have more volumes of a CSI driver than it takes. Trials of preemption change the answer. */
      readonly exceedsLimit: (node: NodeAllocation) => boolean
    }

/** undefined: the pod uses no claims. */
export function* podVolumes(pod: Pod, view: VolumeView): Steps<PodVolumes | undefined> {
  if (!usesClaims(pod)) return undefined
  const uses = [...new Map(claimsOfPod(pod).map((use) => [use.name, use])).values()]
  const found = claimsOf(pod, uses, view)
  if ('reason' in found) return { refused: found }
  const bound: (KnownVolume | undefined)[] = []
  const delayed: DelayedClaim[] = []
  for (const claim of found) {
    const storageClass = view.storageClass(classOfClaim(claim) ?? '')
    if (isFullyBound(claim)) bound.push(view.volume(claim.spec?.volumeName ?? ''))
    else if (!claim.spec?.volumeName && storageClass !== undefined && isDelayed(storageClass)) {
      delayed.push(yield* delayedClaim(claim, storageClass, view))
    } else return { refused: refusedBy('VolumeBinding', 'pod has unbound immediate PersistentVolumeClaims') }
    yield
  }
  const shared = uses.flatMap(({ isEphemeral }, i) => (isEphemeral ? [] : (found[i] ?? [])))
  const missing = shared.find(({ spec }) => spec?.volumeName && view.volume(spec.volumeName) === undefined)
  if (missing !== undefined) {
    return { refused: refusedBy('VolumeZone', `persistentvolume "${missing.spec?.volumeName}" not found`) }
  }
  const exclusive = shared.filter(isForOnePod).map(({ metadata }) => keyText(metadata))
  const limited = found.flatMap((claim) => limitedVolume(claim, view) ?? [])
  return {
    bound,
    delayed: delayed.sort((a, b) => compareQuantities(requestOfClaim(a.claim), requestOfClaim(b.claim))),
    exceedsLimit: (node) => exceedsLimit(limited, node, view),
    isTaken: () => exclusive.some((key) => view.isClaimUsed(key)),
    zones: shared.flatMap(({ spec }) => {
      const volume = view.volume(spec?.volumeName ?? '')
      return volume === undefined ? [] : zoneRulesOf(volume)
    }),
  }
}

/** The claims in the order of `uses`, or why the pod cannot have one of them. */
function claimsOf(pod: Pod, uses: readonly PodClaim[], view: VolumeView): readonly KnownClaim[] | PodRefusal {
  const claims = uses.map(({ name }) => view.claim(claimKeyOf(pod, name)))
  const missing = uses.find(({ isEphemeral }, i) => !isEphemeral && claims[i] === undefined)
  if (missing !== undefined) return refusedBy('VolumeRestrictions', `${claimText(missing.name)} not found`)
  const found: KnownClaim[] = []
  for (const [i, use] of uses.entries()) {
    const claim = claims[i]
    const reason = claim === undefined ? awaitedText(use.name) : (unusable(claim, use, pod) ?? atRest(claim, use, view))
    if (reason !== undefined) return refusedBy('VolumeBinding', reason)
    if (claim !== undefined) found.push(claim)
  }
  return found
}

function unusable(claim: KnownClaim, { name, isEphemeral }: PodClaim, pod: Pod): string | undefined {
  const { metadata, spec, status } = claim
  if (status?.phase === 'Lost') {
    return `${claimText(name)} bound to non-existent persistentvolume "${spec?.volumeName ?? ''}"`
  }
  if (metadata.deletionTimestamp !== undefined) return `${claimText(name)} is being deleted`
  if (!isEphemeral || isMadeForPod(claim, pod)) return undefined
  return `PVC ${keyText(metadata)} was not created for pod ${keyText(pod.metadata)} (pod is not owner)`
}

/** Its data is copied without a pod that changes it, or is not there yet. */
function atRest({ spec }: KnownClaim, { name }: PodClaim, view: VolumeView): string | undefined {
  const volume = view.volume(spec?.volumeName ?? '')
  if (volume === undefined) return undefined
  if (restoreOf(volume) !== undefined) return `${claimText(name)} is being restored from a backup`
  const backup = backupOf(volume)
  if (backup?.mode === 'stopped' && backup.phase !== 'end') return `${claimText(name)} is being backed up`
  const move = moveOf(volume)
  return move !== undefined && ['hold', 'delta', 'place'].includes(move.phase)
    ? `${claimText(name)} is being moved to node "${move.to.node}"`
    : undefined
}

function* delayedClaim(
  claim: KnownClaim,
  storageClass: StoredObject<'storageclasses'>,
  view: VolumeView,
): Steps<DelayedClaim> {
  const selectedNode = claim.metadata.annotations?.[volumeAnnotations.selectedNode]
  const candidates = selectedNode === undefined ? yield* candidatesFor(claim, view) : noCandidates
  return { claim, storageClass, selectedNode, room: view.csi.roomFor(claim, storageClass), ...candidates }
}

function refusedBy(plugin: VolumePlugin, reason: string): PodRefusal {
  return { plugin, reason }
}

function claimText(name: string): string {
  return `persistentvolumeclaim "${name}"`
}

function awaitedText(name: string): string {
  return `waiting for ephemeral volume controller to create the ${claimText(name)}`
}
