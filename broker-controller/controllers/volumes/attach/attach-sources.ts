/** The objects from which follows where volumes of CSI drivers are attached, by the name that a driver's volume has in Kubernetes. */
import { isDeepStrictEqual } from 'node:util'
import type { Node } from '../../../../api/node.ts'
import { shareOfVolume } from '../../../../api/storage/shares.ts'
import { csiVolumeName } from '../../../../api/storage/volume-names.ts'
import type { Loop } from '../../../../daemon/run.ts'
import { attachmentName } from '../../../store/attachment-name.ts'
import { keySets } from '../../../store/indexes/key-sets.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../../store/informer.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { isOutOfService } from '../../node-lifecycle/node-taints.ts'
import { isReady } from '../../node-lifecycle/zones.ts'
import { type ClaimPods, hasLetGo } from '../claim-pods.ts'
import { isUsedBy } from '../protection.ts'
import type { StoredVolume } from '../volume-index.ts'
import type { AttachNode } from './attach-plan.ts'

export type StoredAttachment = StoredObject<'volumeattachments'>

export type CsiVolumeID = { readonly driver: string; readonly handle: string }

/** All that counts for one volume of a driver. */
export type AttachView = CsiVolumeID & {
  /** One, unless several PersistentVolumes were made for it. */
  readonly volumes: readonly StoredVolume[]
  /** False: its driver attaches nothing. */
  readonly isAttachable: boolean
  /** The pods that use it, by node, with the name of the PersistentVolume. */
  readonly users: ReadonlyMap<string, { readonly volume: string; readonly pods: readonly StoredPod[] }>
  readonly attachments: readonly StoredAttachment[]
}

export interface AttachSources {
  /** `key`: as `csiVolumeName`. undefined: no PersistentVolume has it. */
  view(key: string): AttachView | undefined
  node(name: string, key: string): AttachNode | undefined
  catchUp(): void
  readonly listed: Promise<unknown>
  readonly loops: readonly Loop[]
}

/** `changed` is called with the keys of volumes for which another step may be due. */
export function attachSources(needs: InformerNeeds, pods: ClaimPods, changed: (key: string) => void): AttachSources {
  /** Names of PersistentVolumes. */
  const byKey = keySets()
  const byVolume = new Map<string, Map<string, StoredAttachment>>()
  let hasListed = false

  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const [before, now] = [csiIn(previous), csiIn(present)].map((csi) => csi && csiVolumeName(csi))
    const name = (present ?? previous)?.metadata.name ?? ''
    if (before !== undefined && before !== now) byKey.delete(before, name)
    if (now !== undefined) byKey.add(now, name)
    for (const key of new Set([before, now])) if (key !== undefined) changed(key)
  })
  const volumeNamed = (name: string) => volumes.get({ namespace: '', name })
  const volumeChanged = (name: string | undefined) => {
    const csi = csiIn(name ? volumeNamed(name) : undefined)
    if (csi !== undefined) changed(csiVolumeName(csi))
  }
  const claims = informer(needs, 'persistentvolumeclaims', (present, previous) => {
    if (isDeepStrictEqual(present?.spec, previous?.spec) && present?.status?.phase === previous?.status?.phase) return
    for (const claim of [present, previous]) volumeChanged(claim?.spec?.volumeName)
  })
  pods.onChange((keys) => {
    for (const key of keys) volumeChanged(claims.get(keyFrom(key))?.spec?.volumeName)
  })
  const attachments = informer(needs, 'volumeattachments', (present, previous) => {
    const { name } = (present ?? previous)?.metadata ?? { name: '' }
    const volume = (present ?? previous)?.spec.source.persistentVolumeName
    if (volume === undefined) return
    const some = byVolume.get(volume) ?? new Map<string, StoredAttachment>()
    if (present !== undefined) byVolume.set(volume, some.set(name, present))
    else if (some.delete(name) && some.size === 0) byVolume.delete(volume)
    volumeChanged(volume)
  })
  const drivers = informer(needs, 'csidrivers', (present, previous) => {
    const { name } = (present ?? previous)?.metadata ?? { name: '' }
    if (present?.spec?.attachRequired === previous?.spec?.attachRequired && present && previous) return
    for (const key of byKey.groups()) if (key.startsWith(csiVolumeName({ driver: name, handle: '' }))) changed(key)
  })
  const nodes = informer(needs, 'nodes', (present, previous) => {
    if (present !== undefined && previous !== undefined && isDeepStrictEqual(factsOf(present), factsOf(previous)))
      return
    // A node that is new may have pods that wait for it already.
    if (previous === undefined && hasListed) for (const key of byKey.groups()) changed(key)
    for (const volume of attachedTo((present ?? previous)?.metadata.name)) volumeChanged(volume)
  })
  const attachedTo = (node: string | undefined): readonly string[] =>
    [...byVolume]
      .filter(([, some]) => [...some.values()].some(({ spec }) => spec.nodeName === node))
      .map(([volume]) => volume)
  const informers = [volumes, claims, attachments, drivers, nodes]

  const usersOf = (volume: StoredVolume): readonly StoredPod[] => {
    const { claimRef } = volume.spec ?? {}
    const claim = claimRef && claims.get(keyFrom(keyText(claimRef)))
    if (claim === undefined || claim.metadata.uid !== claimRef?.uid) return []
    if (claim.spec?.volumeName !== volume.metadata.name) return []
    const { namespace = '', name } = claim.metadata
    return [...pods.podsOf({ namespace, name })].filter((pod) => !hasLetGo(pod) && isUsedBy(claim, pod))
  }
  return {
    view(key) {
      const found = [...byKey.of(key)].sort().flatMap((name) => volumeNamed(name) ?? [])
      const id = csiIn(found[0])
      if (id === undefined) return undefined
      const attached = found.flatMap(({ metadata }) => [...(byVolume.get(metadata.name)?.values() ?? [])])
      return {
        ...{ ...id, volumes: found, users: usersByNode(found, usersOf) },
        isAttachable: drivers.get({ namespace: '', name: id.driver })?.spec?.attachRequired !== false,
        // Another one was made by somebody else, who removes it.
        attachments: attached.filter(
          ({ metadata, spec }) =>
            spec.attacher === id.driver && metadata.name === attachmentName({ ...id, node: spec.nodeName }),
        ),
      }
    },
    node(name, key) {
      const node = nodes.get({ namespace: '', name })
      if (node === undefined) return undefined
      const { volumesInUse, ...facts } = factsOf(node)
      return { ...facts, hasInUse: volumesInUse.includes(key) }
    },
    catchUp() {
      for (const one of [...informers, pods]) one.catchUp()
    },
    listed: Promise.all([...informers, pods].map(({ listed }) => listed)).then(() => {
      hasListed = true
    }),
    loops: [
      { name: 'volumes', run: volumes.run },
      { name: 'claims', run: claims.run },
      { name: 'attachments', run: attachments.run },
      { name: 'drivers', run: drivers.run },
      { name: 'nodes', run: nodes.run },
    ],
  }
}

function usersByNode(
  volumes: readonly StoredVolume[],
  usersOf: (volume: StoredVolume) => readonly StoredPod[],
): AttachView['users'] {
  const users = new Map<string, { volume: string; pods: StoredPod[] }>()
  for (const volume of volumes) {
    for (const pod of usersOf(volume)) {
      const node = pod.spec.nodeName ?? ''
      const there = users.get(node) ?? { volume: volume.metadata.name, pods: [] }
      there.pods.push(pod)
      users.set(node, there)
    }
  }
  return users
}

/** undefined: it is not of a driver, or nodes mount it by themselves. */
function csiIn(volume: StoredVolume | undefined): CsiVolumeID | undefined {
  const { csi } = volume?.spec ?? {}
  if (volume === undefined || csi === undefined || shareOfVolume(volume) !== undefined) return undefined
  return { driver: csi.driver, handle: csi.volumeHandle }
}

function factsOf(node: Node) {
  const { volumesInUse = [] } = node.status ?? {}
  return { isReady: isReady(node), isOutOfService: isOutOfService(node), volumesInUse }
}

/** Several nodes may have it at a time (IsMultiAttachAllowed in pkg/volume/util). */
export function isShared({ spec }: StoredVolume): boolean {
  const { accessModes = [] } = spec ?? {}
  return accessModes.length === 0 || accessModes.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany')
}
