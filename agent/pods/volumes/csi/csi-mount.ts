/** A volume of a CSI driver → the fields of the driver's calls. Pure. */
import type { Pod } from '../../../../api/pod.ts'
import { setUpFailed } from '../mount-step.ts'

/** What the node service of a driver can do. */
export type CsiCapabilities = {
  /** A volume is staged once for the machine, and published for each pod. */
  readonly stages: boolean
  /** The driver gives the files to the fsGroup. */
  readonly mountsWithGroup: boolean
  /** It distinguishes one writer from several on this machine. */
  readonly hasSingleNodeModes: boolean
  /** It expands volumes on this machine. */
  readonly expands: boolean
  /** It states how full volumes are. */
  readonly hasStats: boolean
  /** It states whether volumes are as they should be. */
  readonly hasCondition: boolean
}

type Texts = { readonly [key: string]: string }

/** The size of a volume that its driver may have to expand on this machine. */
export type CsiGrowth = {
  /** The capacity of the PersistentVolume. */
  readonly size: string
  /** The claim waits for it. Otherwise the volume was expanded on another node, or before it was mounted. */
  readonly isAwaited: boolean
  readonly secrets: { readonly texts: Texts } | { readonly missing: string }
}

/** A volume of a driver as one pod has it. Texts of Secrets are in it: it is not written to disk. */
export type CsiMount = {
  readonly driver: string
  readonly handle: string
  /** Its driver is asked for the mount again while the pod runs. */
  readonly republish?: true
  /** It is a volume of the pod alone, and goes with it. */
  readonly isInline?: true
  /** It is detached from this machine when it is not used here. */
  readonly isAttachable?: true
  readonly isBlock?: true
  /** As `namespace/name`. */
  readonly pod: string
  readonly growth?: CsiGrowth
  /** '': that of the driver. */
  readonly fsType: string
  /** The first of the PersistentVolume. */
  readonly accessMode: string
  /** The fsGroup of the pod, for a driver that mounts with it. */
  readonly group?: number
  readonly readOnly: boolean
  readonly mountOptions: readonly string[]
  readonly attributes: Texts
  /** The pod's name, UID and service account, for a driver that asks for them. */
  readonly podAttributes: Texts
  /** What the driver gave when it attached the volume to the node. */
  readonly publishContext: Texts
  readonly stageSecrets: Texts
  readonly publishSecrets: Texts
}

const accessModes: { readonly [mode: string]: number } = {
  ReadWriteOnce: 1,
  ReadOnlyMany: 3,
  ReadWriteMany: 5,
  ReadWriteOncePod: 1,
}
const singleNodeModes: { readonly [mode: string]: number } = { ...accessModes, ReadWriteOnce: 7, ReadWriteOncePod: 6 }

/** VolumeCapability.AccessMode.Mode (pkg/volume/csi/csi_client.go). */
export function csiAccessMode(
  mode: string,
  { hasSingleNodeModes }: Pick<CsiCapabilities, 'hasSingleNodeModes'>,
): number {
  return (hasSingleNodeModes ? singleNodeModes : accessModes)[mode] ?? 0
}

/** The names of the kubelet for what fails. */
export function csiSteps(isBlock: boolean | undefined) {
  return isBlock
    ? {
        attach: 'MapVolume.WaitForAttach failed',
        stage: 'MapVolume.SetUpDevice failed',
        publish: 'MapVolume.MapPodDevice failed',
        expand: 'MapVolume.MarkVolumeAsMounted failed while expanding volume',
      }
    : {
        attach: 'MountVolume.WaitForAttach failed',
        stage: 'MountVolume.MountDevice failed',
        publish: setUpFailed,
        expand: 'MountVolume.Setup failed while expanding volume',
      }
}

export function volumeCapability(csi: CsiMount, capabilities: CsiCapabilities) {
  const { fsType, mountOptions, accessMode, group, isBlock } = csi
  if (isBlock) return { block: {}, accessMode: { mode: csiAccessMode(accessMode, capabilities) } }
  const volumeMountGroup = capabilities.mountsWithGroup && group !== undefined ? String(group) : ''
  return {
    mount: { fsType, mountFlags: mountOptions, volumeMountGroup },
    accessMode: { mode: csiAccessMode(accessMode, capabilities) },
  }
}

/** CSIDriver.spec.podInfoOnMount (getPodInfoAttrs in pkg/volume/csi). */
export function podInfo({ metadata, spec }: Pod, isEphemeral: boolean): Texts {
  const { name = '', namespace = '', uid = '' } = metadata
  return {
    'csi.storage.k8s.io/pod.name': name,
    'csi.storage.k8s.io/pod.namespace': namespace,
    'csi.storage.k8s.io/pod.uid': uid,
    'csi.storage.k8s.io/serviceAccount.name': spec.serviceAccountName ?? '',
    'csi.storage.k8s.io/ephemeral': String(isEphemeral),
  }
}

/**
 * Whether the files of a volume get the fsGroup of the pod (supportsFSGroup in pkg/volume/csi/csi_mounter.go). Without a CSIDriver the
 * policy is the default one.
 */
export function getsGroup(
  { fsType, accessModes = [] }: { readonly fsType?: string; readonly accessModes?: readonly string[] },
  policy = 'ReadWriteOnceWithFSType',
): boolean {
  if (policy === 'None') return false
  if (policy === 'File') return true
  const isOfOneNode = accessModes.includes('ReadWriteOnce') || accessModes.includes('ReadWriteOncePod')
  return fsType !== undefined && fsType !== '' && isOfOneNode
}
