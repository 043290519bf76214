/** The claims that the pods of a node use, with their volumes, as they are published to it. Pure. */
import type { Node } from '../../../api/node.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import { matchesNodeSelectorTerms } from '../../../api/selectors.ts'
import type { ClaimRecord } from '../../../api/storage/claim-record.ts'
import type { NodeClaim, NodeVolume, ProvenRecord } from '../../../api/storage/node-claim.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { claimsOfPod, isForOnePod } from '../../../api/storage/pod-claims.ts'
import { hasDataAnnotation, localProvisioner, poolAnnotation } from '../../../api/storage/pools.ts'
import { type NasShare, shareOfVolume } from '../../../api/storage/shares.ts'
import { volumeAnnotations, volumeFinalizers } from '../../../api/storage/volume-names.ts'
import { type CsiSources, nodeCsiVolume, secretsOfCsi } from './csi/node-csi-volume.ts'

export type NodeClaimSources = CsiSources & {
  readonly node: Node | undefined
  /** By `namespace/name`. */
  readonly claim: (key: string) => PersistentVolumeClaim | undefined
  readonly volume: (name: string) => PersistentVolume | undefined
  /** All pods that use the claim, on any node. */
  readonly podsUsing: (key: string) => readonly Pod[]
  /** What the node keeps of both for a controller that has lost them; left out: nothing. */
  readonly recordOf?: (record: ClaimRecord) => ProvenRecord | undefined
}

/** By namespace and name. A claim that does not exist is left out. */
export function nodeClaims(pods: readonly Pod[], sources: NodeClaimSources): readonly NodeClaim[] {
  const keys = new Set(pods.flatMap(claimKeysOf))
  return [...keys].sort().flatMap((key) => {
    const claim = sources.claim(key)
    return claim === undefined ? [] : [nodeClaim(key, claim, sources)]
  })
}

/** As `namespace/name`. */
export function claimKeysOf(pod: Pod): readonly string[] {
  return claimsOfPod(pod).map(({ name }) => `${pod.metadata.namespace}/${name}`)
}

/** The Secrets, as `namespace/name`, that the node needs to mount these claims. */
export function secretsOfClaims(claims: readonly NodeClaim[]): readonly string[] {
  return claims.flatMap(({ volume }) => [...secretOfShare(volume?.share), ...secretsOfCsi(volume?.csi)])
}

export function secretOfShare(share: NasShare | undefined): readonly string[] {
  return share?.secret === undefined ? [] : [`${share.secret.namespace}/${share.secret.name}`]
}

/** As the kubelet judges a claim (getPVCExtractPV and getPVSpec in pkg/kubelet/volumemanager/populator). */
function nodeClaim(key: string, claim: PersistentVolumeClaim, sources: NodeClaimSources): NodeClaim {
  const { namespace = '', name = '', uid = '', deletionTimestamp, finalizers = [] } = claim.metadata
  const { volumeName = '' } = claim.spec ?? {}
  const accessModes = claim.spec?.accessModes ?? []
  const { ownerReferences = [] } = claim.metadata
  const owner = ownerReferences.find(({ controller, kind }) => controller === true && kind === 'Pod')
  const head = { namespace, name, uid, accessModes, ...(owner !== undefined && { owner: owner.uid }) }
  const refused = (refusal: string): NodeClaim => ({ ...head, refusal })
  // A protected claim stays as long as a pod uses it: a pod that has it goes on.
  if (deletionTimestamp !== undefined && !finalizers.includes(volumeFinalizers.claim)) {
    return refused('PVC is being deleted')
  }
  if (claim.status?.phase !== 'Bound') return refused('PVC is not bound')
  if (volumeName === '') return refused('PVC has empty pvc.Spec.VolumeName')
  const volume = sources.volume(volumeName)
  if (volume === undefined) {
    return refused(`failed to fetch PV ${volumeName} from API server: persistentvolumes "${volumeName}" not found`)
  }
  const { claimRef } = volume.spec ?? {}
  if (claimRef === undefined) {
    return refused(
      `found PV object ${volumeName} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`,
    )
  }
  if (claimRef.uid !== uid) {
    return refused(
      `found PV object ${volumeName} but its pv.Spec.ClaimRef.UID ${claimRef.uid ?? ''} does not point to claim.UID ${uid}`,
    )
  }
  const holder = isForOnePod(claim) ? holderOf(sources.podsUsing(key)) : undefined
  const record = sources.recordOf?.({ claim, volume })
  return {
    ...{ ...head, volume: nodeVolume(volume, claim, sources) },
    ...(holder !== undefined && { pod: holder }),
    ...(record !== undefined && { record }),
  }
}

/**
 * The one pod that may use a ReadWriteOncePod claim: the first that its node has started, or else the oldest. The others
 * wait until it is gone, on whichever node it is.
 */
function holderOf(pods: readonly Pod[]): string | undefined {
  let first: { readonly order: string; readonly uid: string | undefined } | undefined
  for (const pod of pods) {
    if (!pod.spec.nodeName || isFinished(pod)) continue
    const { creationTimestamp = '', uid = '' } = pod.metadata
    const order = [pod.status?.startTime ?? '~', creationTimestamp, uid].join(' ')
    if (first === undefined || order < first.order) first = { order, uid }
  }
  return first?.uid
}

function nodeVolume(persistent: PersistentVolume, claim: PersistentVolumeClaim, sources: NodeClaimSources): NodeVolume {
  const { node } = sources
  const { metadata, spec = {} } = persistent
  const { hostPath, local, volumeMode, mountOptions = [], nodeAffinity } = spec
  const { name = '', uid = '' } = metadata
  const terms = nodeAffinity?.required?.nodeSelectorTerms
  const elsewhere = terms !== undefined && node !== undefined && !matchesNodeSelectorTerms(terms, node)
  const { path } = hostPath ?? local ?? {}
  const share = shareOfVolume(persistent)
  const csi = nodeCsiVolume(persistent, { node: node?.metadata.name, claim }, sources)
  const { annotations = {} } = metadata
  const isOurs = local !== undefined && annotations[volumeAnnotations.provisionedBy] === localProvisioner
  const pool = isOurs ? annotations[poolAnnotation] : undefined
  return {
    ...{ name, uid, source: sourceOf(spec) },
    ...(path !== undefined && { path }),
    ...(pool !== undefined && { pool }),
    ...(pool !== undefined && annotations[hasDataAnnotation] === 'true' && { hasData: true }),
    ...(local?.fsType && { fsType: local.fsType }),
    ...(hostPath?.type && { type: hostPath.type }),
    ...(volumeMode !== undefined && volumeMode !== 'Filesystem' && { volumeMode }),
    ...(share === undefined && mountOptions.length > 0 && { mountOptions }),
    ...(share !== undefined && { share }),
    ...(csi !== undefined && { csi }),
    ...(elsewhere && { elsewhere }),
  }
}

function sourceOf({ hostPath, local }: NonNullable<PersistentVolume['spec']>): NodeVolume['source'] {
  if (hostPath) return 'hostPath'
  return local ? 'local' : 'other'
}
