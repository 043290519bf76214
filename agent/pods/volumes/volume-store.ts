/** The interface to the volumes on this machine. `agent/adapters/disk/volume-store.ts` implements it on files. */
import type { CsiMount } from './csi/csi-mount.ts'
import { setUpFailed } from './mount-step.ts'
import type { MountedShare } from './share-mount.ts'

/** A file of a volume: `path` within it, already found safe. */
export type VolumeFile = {
  readonly path: string
  readonly content: Buffer
  readonly mode: number
  /** undefined: the agent's. */
  readonly owner?: number
}

/** What a pod wants of a volume, or why it cannot have it. */
export type VolumeResult<T> =
  | { readonly ok: true; readonly value: T }
  /** `event`: the whole text of the Event, where it is not that of a failed MountVolume.SetUp. */
  | {
      readonly ok: false
      readonly message: string
      readonly event?: string
      /** The controller records the Event. */
      readonly isQuiet?: true
    }

export type WantedVolume = { readonly name: string } & (
  | { readonly kind: 'emptyDir'; readonly memory: boolean; readonly sizeBytes?: number; readonly group?: number }
  | { readonly kind: 'hostPath'; readonly path: string; readonly type: string }
  /** Kept in memory only. */
  | { readonly kind: 'files'; readonly files: readonly VolumeFile[]; readonly group?: number }
  /** Files that were placed before, as they are: what they were written from is missing now. */
  | { readonly kind: 'earlierFiles' }
  | ({ readonly kind: 'claim' } & ClaimVolume)
  /** The volume that was placed for its claim before: now the claim cannot be mounted, or is missing. */
  | { readonly kind: 'earlierClaim' }
)

/** The volume that a claim is bound to. */
export type ClaimVolume = {
  /** The uid of the PersistentVolume. */
  readonly uid: string
  readonly volume: string
  /** A local one must exist; a share is mounted, and a volume of a CSI driver by its driver. */
  readonly source: 'hostPath' | 'local' | 'share' | 'csi'
  /** Not of a share, nor of a driver. */
  readonly path: string
  readonly share?: MountedShare
  readonly csi?: CsiMount
  /** The type of a hostPath. */
  readonly type: string
  /** The id of the pool in which its folder is made; `path` then has its name in the pool. */
  readonly pool?: string
  /** The file system of a local device that is not a block volume; undefined: the one that it has. */
  readonly fsType?: string
  /** The device is mounted to be read only. */
  readonly isReadOnly?: boolean
  /** A block device, which containers have as a device. */
  readonly isBlock?: true
  /** Its folder is there, or in the trash: none is made. */
  readonly hasData?: boolean
  /** The claim, as `namespace/name`. */
  readonly claim: string
  readonly claimUID?: string
  /** No other pod of this machine may have it. */
  readonly isForOnePod: boolean
  /** All its files get this group. */
  readonly group?: number
  /** Only if its folder does not have the group and the permissions. */
  readonly groupOnMismatch?: boolean
}

/** `isReplaced`: the folder was removed or replaced on its server. Containers that have it mounted never see the new one. */
export type VolumeSilence = { readonly why: string; readonly isReplaced?: true }

/** Doing a thing twice is doing it once. What cannot be done is thrown as VolumeError. */
export interface VolumeStore {
  /** Makes it, or brings its files to what is wanted, all at one moment. Gives where it is on this machine. */
  place(podUID: string, volume: WantedVolume): Promise<string>
  /**
   * A folder or file of a placed volume, for one mount of a container: where it is on this machine. No link in the
   * volume leads out of it, whatever is written there meanwhile. What is not there is made, as a folder (SafeMakeDir in
   * pkg/kubelet/kubelet_pods.go, makeMounts).
   */
  part(podUID: string, volume: WantedVolume, subPath: string, mount: MountPlace): Promise<string>
  /** Why the file system of a volume does not answer; undefined: it answers, or is on this machine. */
  silence(path: string): Promise<VolumeSilence | undefined>
  /** Where the volume of a claim, or a share, was placed for the pod; undefined: it was not. */
  placedAt(podUID: string, name: string): Promise<string | undefined>
  /** Unmounts the parts of the pod's volumes. A container that starts later has its parts mounted again. */
  unmountParts(podUID: string): Promise<void>
  /** An empty file for what a container leaves to be read, for this attempt at it; those before the last go. */
  messageFile(podUID: string, containerName: string, attempt: number): Promise<string>
  /** The last bytes in it; none when there is no such file. */
  message(podUID: string, containerName: string, attempt: number, most: number): Promise<Buffer>
  /** The pod's file for a name below `/etc`, with this text; those that have it mounted see it change. */
  etcFile(podUID: string, name: 'hosts' | 'resolv.conf', text: string): Promise<string>
  /** Keeps a token of the pod beside its volumes, in memory; `durable`: also where it survives a reboot. */
  saveToken(podUID: string, id: string, token: string, keep: { readonly durable: boolean }): Promise<void>
  /** The one that was saved last; after a reboot, the last durable one. */
  savedToken(podUID: string, id: string): Promise<string | undefined>
  /**
   * Nothing of the pod's own volumes is left, nor of its messages. Rejects when `signal` aborts: that may take long.
   */
  remove(podUID: string, signal?: AbortSignal): Promise<void>
  /** The pods that have something here. */
  podUIDs(): Promise<readonly string[]>
}

export type MountPlace = { readonly containerName: string; readonly index: number }

/** Why a volume cannot be provided, as a message for the author of the pod. */
export class VolumeError extends Error {
  override readonly name = 'VolumeError'
  /** What failed, in the words of the kubelet. */
  readonly step: string

  constructor(message: string, { step = setUpFailed, ...options }: ErrorOptions & { step?: string } = {}) {
    super(message, options)
    this.step = step
  }
}
