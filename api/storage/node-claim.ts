/** A claim that pods of a node use, as the node receives it with them: only what it needs to mount the volume. */
import { hardwareIdentityAnnotation } from '../node/hardware-identity.ts'
import type { Node } from '../node.ts'
import type { Pod } from '../pod.ts'
import { bool, type Described, integer, list, mapOf, object, oneOf, optional, text } from '../schema.ts'
import { claimsOfPod } from './pod-claims.ts'
import { ShareSchema } from './shares.ts'

const SecretNameSchema = object({ namespace: text, name: text })

/** What a CSIDriver states about the mounts of its driver. */
const csiDriverFacts = {
  podInfo: optional(bool),
  fsGroupPolicy: optional(text),
  /** `tokenRequests`: tokens of the pod's service account that the driver receives with each mount. */
  tokens: optional(list(object({ audience: text, expirationSeconds: optional(integer) }))),
  /** `requiresRepublish`: it is asked for the mount again and again while the pod runs. */
  republish: optional(bool),
}

/** The CSIDriver of volumes that pods have inline. Without one they cannot be mounted. */
export const NodeCsiDriverSchema = object({
  name: text,
  /** `volumeLifecycleModes`. */
  modes: optional(list(text)),
  ...csiDriverFacts,
})
export type NodeCsiDriver = Described<typeof NodeCsiDriverSchema>

/** A volume of a CSI driver, with what the CSIDriver of that name states. */
const NodeCsiVolumeSchema = object({
  driver: text,
  handle: text,
  fsType: optional(text),
  attributes: optional(mapOf(text)),
  /** Those of the PersistentVolume. */
  accessModes: optional(list(text)),
  stageSecret: optional(SecretNameSchema),
  publishSecret: optional(SecretNameSchema),
  expandSecret: optional(SecretNameSchema),
  /** The capacity of the PersistentVolume, where its driver may have to expand it on the node. */
  size: optional(text),
  /** The claim has a smaller capacity, and waits for the node. */
  grows: optional(bool),
  ...csiDriverFacts,
  /** Its driver attaches it to the node: it is detached when the node does not use it. */
  attachable: optional(bool),
  /** It is not attached to the node yet, in the words of the kubelet. */
  notAttached: optional(text),
  /** What the driver gave when it attached it. */
  publishContext: optional(mapOf(text)),
})
export type NodeCsiVolume = Described<typeof NodeCsiVolumeSchema>

const NodeVolumeSchema = object({
  name: text,
  uid: text,
  /** What it is made of. `other`: a `share`, `csi`, or nothing that this version of the controller sends. */
  source: oneOf('hostPath', 'local', 'other'),
  /** The path of `hostPath` and `local`. */
  path: optional(text),
  /** The id of the pool that it is in: its folder is made at the first mount. */
  pool: optional(text),
  /** Its folder is in the pool, or in its trash: none is made in its place. */
  hasData: optional(bool),
  /** The file system of a `local` device. */
  fsType: optional(text),
  /** The type of `hostPath`. */
  type: optional(text),
  /** Left out: Filesystem. */
  volumeMode: optional(text),
  mountOptions: optional(list(text)),
  share: optional(ShareSchema),
  csi: optional(NodeCsiVolumeSchema),
  /** Its node affinity does not match the node. */
  elsewhere: optional(bool),
})
export type NodeVolume = Described<typeof NodeVolumeSchema>

/** A record of a claim and its volume (see `claim-record.ts`). `proof`: a controller of this fleet has sent this text. */
export const ProvenRecordSchema = object({ text, proof: text })
export type ProvenRecord = Described<typeof ProvenRecordSchema>

/** With neither `refusal` nor `volume` it cannot be mounted, either. */
export const NodeClaimSchema = object({
  namespace: text,
  name: text,
  uid: text,
  accessModes: optional(list(text)),
  /** The uid of the pod that it was made for. */
  owner: optional(text),
  /** Why no pod can mount it now, in the words of the kubelet. */
  refusal: optional(text),
  volume: optional(NodeVolumeSchema),
  /** The uid of the pod that may mount a claim for one pod alone. */
  pod: optional(text),
  /** The claim and its volume, for a controller that has lost them. */
  record: optional(ProvenRecordSchema),
})
export type NodeClaim = Described<typeof NodeClaimSchema>

/** On a Node, written by its agent: `true` if it mounts the volumes of claims. */
export const mountsClaimsAnnotation = 'bramble.dev/mounts-claims'

/** As above, for block volumes: an older agent starts a container without its devices. */
export const mapsBlocksAnnotation = 'bramble.dev/maps-block-volumes'

/** The agent that registered the Node is of a version that does not mount the claims of the pod. A Node that no agent registered is not judged. */
export function cannotMount({ metadata: { annotations = {} } }: Node, pod: Pod): boolean {
  const mounts = annotations[mountsClaimsAnnotation] === 'true'
  const maps = annotations[mapsBlocksAnnotation] === 'true'
  // Nearly always, and asked for each pod and node.
  if ((mounts && maps) || !(hardwareIdentityAnnotation in annotations)) return false
  return claimsOfPod(pod).length > 0 && !(usesDevices(pod) ? maps : mounts)
}

/** The annotations by which `cannotMount` judges. */
export function mountAbilities({ metadata: { annotations = {} } }: Node): readonly unknown[] {
  return [
    hardwareIdentityAnnotation in annotations,
    annotations[mountsClaimsAnnotation],
    annotations[mapsBlocksAnnotation],
  ]
}

function usesDevices({ spec }: Pod): boolean {
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  return all.some(({ volumeDevices = [] }) => volumeDevices.length > 0)
}
