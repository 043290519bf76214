/** Claims, volumes and storage classes as decisions see them: as stored, with what was promised to pods that wait for their volumes. */
import type { Pod } from '../../../api/pod.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { classOfVolume, isReservedFor } from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { keyText } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import type { StoredObject, StoredPod } from '../../store/store.ts'
import { type CsiCache, type CsiView, csiCache } from './csi-cache.ts'

export type KnownClaim = StoredObject<'persistentvolumeclaims'>
export type KnownVolume = StoredObject<'persistentvolumes'>

/** How the delayed claims of a pod get their volumes on a node. */
export type VolumeChoice = {
  readonly bindings: readonly VolumeBinding[]
  /** Claims for which a volume is to be made. */
  readonly provisions: readonly KnownClaim[]
}

export type VolumeBinding = { readonly claim: KnownClaim; readonly volume: KnownVolume }

/** What decisions read. A claim is named by `namespace/name`. */
export interface VolumeView {
  claim(key: string): KnownClaim | undefined
  volume(name: string): KnownVolume | undefined
  storageClass(name: string): StoredObject<'storageclasses'> | undefined
  /** '': volumes without a class. */
  volumesOfClass(name: string): Iterable<KnownVolume>
  readonly csi: CsiView
  /** Whether a pod that has a node uses the claim. */
  isClaimUsed(key: string): boolean
  /** The pods that have a node and use the claim, as `namespace/name`. */
  usersOf(key: string): Iterable<string>
}

export interface VolumeCache extends VolumeView {
  readonly stored: Pick<VolumeView, 'claim' | 'volume'>
  readonly csi: CsiCache
  storageClasses(): Iterable<StoredObject<'storageclasses'>>
  putClaim(key: string, claim: KnownClaim | undefined): void
  putVolume(name: string, volume: KnownVolume | undefined): void
  putStorageClass(name: string, storageClass: StoredObject<'storageclasses'> | undefined): void
  /** A pod comes to a node, or leaves it. */
  enter(pod: StoredPod): void
  leave(pod: StoredPod): void
  /** Other pods see the volumes as taken, and the claims as meant for that node, until `release`. */
  promise(podKey: string, choice: VolumeChoice, nodeName: string): void
  release(podKey: string): void
}

export function volumeCache(): VolumeCache {
  const claims = new Map<string, KnownClaim>()
  const volumes = new Map<string, KnownVolume>()
  const classes = new Map<string, StoredObject<'storageclasses'>>()
  const byClass = new Map<string, Set<string>>()
  const users = new Map<string, Set<string>>()
  const takenVolumes = promises<KnownClaim>()
  const chosenNodes = promises<string>()
  const chosen = new Map<string, VolumeChoice>()

  const volume = (name: string): KnownVolume | undefined => {
    const stored = volumes.get(name)
    const claim = takenVolumes.get(name)
    return stored === undefined || claim === undefined ? stored : takenBy(stored, claim)
  }

  const index = (name: string, one: KnownVolume | undefined, act: 'add' | 'delete') => {
    if (one === undefined) return
    const className = classOfVolume(one)
    const names = byClass.get(className) ?? new Set()
    byClass.set(className, names)
    names[act](name)
    if (names.size === 0) byClass.delete(className)
  }

  return {
    csi: csiCache(),
    storageClasses: () => classes.values(),
    stored: { claim: (key) => claims.get(key), volume: (name) => volumes.get(name) },
    claim(key) {
      const stored = claims.get(key)
      const nodeName = chosenNodes.get(key)
      return stored === undefined || nodeName === undefined ? stored : withSelectedNode(stored, nodeName)
    },
    volume,
    storageClass: (name) => classes.get(name),
    *volumesOfClass(className) {
      for (const name of byClass.get(className) ?? []) {
        const one = volume(name)
        if (one !== undefined) yield one
      }
    },
    isClaimUsed: (key) => users.has(key),
    usersOf: (key) => users.get(key) ?? [],
    putClaim: (key, claim) => put(claims, key, claim),
    putVolume(name, present) {
      index(name, volumes.get(name), 'delete')
      put(volumes, name, present)
      index(name, present, 'add')
    },
    putStorageClass: (name, storageClass) => put(classes, name, storageClass),
    enter(pod) {
      if (!usesClaims(pod)) return
      for (const { name } of claimsOfPod(pod)) {
        const key = claimKeyOf(pod, name)
        users.set(key, (users.get(key) ?? new Set()).add(keyText(pod.metadata)))
      }
    },
    leave(pod) {
      if (!usesClaims(pod)) return
      for (const { name } of claimsOfPod(pod)) {
        const key = claimKeyOf(pod, name)
        const present = users.get(key)
        if (present?.delete(keyText(pod.metadata)) && present.size === 0) users.delete(key)
      }
    },
    promise(podKey, choice, nodeName) {
      chosen.set(podKey, choice)
      for (const { claim, volume } of choice.bindings) takenVolumes.add(volume.metadata.name, podKey, claim)
      for (const claim of choice.provisions) chosenNodes.add(keyText(claim.metadata), podKey, nodeName)
    },
    release(podKey) {
      const choice = chosen.get(podKey)
      if (choice === undefined) return
      chosen.delete(podKey)
      for (const { volume } of choice.bindings) takenVolumes.remove(volume.metadata.name, podKey)
      for (const claim of choice.provisions) chosenNodes.remove(keyText(claim.metadata), podKey)
    },
  }
}

/** Whether the claim has its volume, with both sides written (isPVCFullyBound). */
export function isFullyBound({ metadata, spec }: KnownClaim): boolean {
  return Boolean(spec?.volumeName) && metadata.annotations?.[volumeAnnotations.bindCompleted] !== undefined
}

/** Asked of every pod that comes and goes, and most use none. */
export function usesClaims({ spec }: Pod): boolean {
  for (const { persistentVolumeClaim, ephemeral } of spec.volumes ?? []) {
    if (persistentVolumeClaim !== undefined || ephemeral !== undefined) return true
  }
  return false
}

export function claimKeyOf({ metadata }: Pod, claimName: string): string {
  return keyText({ namespace: metadata.namespace ?? '', name: claimName })
}

/** The volume with the claim in it. A program chose it, unless a person had reserved it for the claim (GetBindVolumeToClaim). */
export function boundVolume(volume: KnownVolume, claim: KnownClaim): KnownVolume {
  const bound = { ...volume, spec: { ...volume.spec, claimRef: objectReference(claim) } }
  if (isReservedFor(volume, claim)) return bound
  const annotations = { ...volume.metadata.annotations, [volumeAnnotations.boundByController]: 'yes' }
  return { ...bound, metadata: { ...volume.metadata, annotations } }
}

export function withSelectedNode(claim: KnownClaim, nodeName: string): KnownClaim {
  const annotations = { ...claim.metadata.annotations, [volumeAnnotations.selectedNode]: nodeName }
  return { ...claim, metadata: { ...claim.metadata, annotations } }
}

/** What is stored is newer than a promise: who has the volume keeps it. */
function takenBy(stored: KnownVolume, claim: KnownClaim): KnownVolume {
  if (stored.spec?.claimRef?.uid || (stored.spec?.claimRef !== undefined && !isReservedFor(stored, claim)))
    return stored
  return boundVolume(stored, claim)
}

/** What was promised to pods; several pods may use one claim. */
function promises<Value>() {
  const all = new Map<string, { readonly value: Value; readonly holders: Set<string> }>()
  return {
    get: (name: string) => all.get(name)?.value,
    add(name: string, holder: string, value: Value) {
      const holders = all.get(name)?.holders ?? new Set()
      all.set(name, { value, holders: holders.add(holder) })
    },
    remove(name: string, holder: string) {
      const present = all.get(name)
      if (present?.holders.delete(holder) && present.holders.size === 0) all.delete(name)
    },
  }
}

function put<Value>(values: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) values.delete(key)
  else values.set(key, value)
}
