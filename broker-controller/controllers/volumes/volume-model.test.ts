import { test } from 'tap'
import { compareQuantities } from '../../../api/quantity.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import {
  capacityOfVolume,
  classOfClaim,
  classOfVolume,
  hasAccessModesOf,
  hasVolumeModeOf,
  isLargeEnoughFor,
} from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations, volumeFinalizers } from '../../../api/storage/volume-names.ts'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import type { Store } from '../../store/store.ts'
import { crashingStore } from '../../testing/crashing-store.ts'
import { aStorageClass, aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { type VolumeWorld, volumeWorld } from '../../testing/volume-world.ts'
import { hasAnnotation, type StoredClaim } from './bind-writes.ts'
import type { StoredVolume } from './volume-index.ts'

type Test = Parameters<typeof volumeWorld>[0]
const { provisionedBy, provisioner, selectedNode, boundByController } = volumeAnnotations

const names = ['a', 'b', 'c', 'd', 'e']
const nodes = ['pi-01', 'pi-02']
const classes = { late: 'WaitForFirstConsumer', made: 'Immediate', fast: 'Immediate' } as const

/** What people, the scheduler, nodes and a provisioner do to the objects of a world. */
function actors(world: VolumeWorld, random: () => number) {
  const { store } = world
  const among = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  const oneOf = async <R extends 'persistentvolumes' | 'persistentvolumeclaims' | 'pods'>(resource: R) => {
    const { items } = await store.list(resource)
    return items.length === 0 ? undefined : among(items)
  }
  const size = () => among(['1Gi', '1Gi', '2Gi', '3Gi'])
  const modes = () =>
    among([['ReadWriteOnce'], ['ReadWriteOnce'], ['ReadWriteMany', 'ReadWriteOnce'], ['ReadWriteOncePod']])
  /** A deletion that meets a write of the binder waits a moment. */
  const ignoringConflicts = async (act: () => Promise<unknown>) => {
    let isDone = false
    void act()
      .catch(() => undefined)
      .finally(() => {
        isDone = true
      })
    while (!isDone) await world.settle(1)
  }

  const addClaim = async () => {
    const name = among(names)
    const { status: _, ...claim } = aStoredClaim(name, {
      spec: {
        accessModes: modes(),
        resources: { requests: { storage: size() } },
        ...(random() < 0.6 && { storageClassName: among(['', 'late', 'made', 'gone']) }),
        ...(random() < 0.15 && { volumeName: `v-${among(names)}` }),
        ...(random() < 0.1 && { volumeMode: 'Block' }),
      },
    })
    await world.add('persistentvolumeclaims', { ...claim, metadata: { namespace: 'default', name } })
  }
  const addVolume = async () => {
    const { status: _, ...volume } = aStoredVolume(`v-${among([...names, 'x', 'y', 'z'])}`, {
      spec: {
        accessModes: modes(),
        capacity: { storage: size() },
        storageClassName: among(['', '', 'late', 'fast']),
        persistentVolumeReclaimPolicy: among(['Retain', 'Retain', 'Delete', 'Recycle']),
        ...(random() < 0.2 && { claimRef: claimRefTo(among(names), among(['', 'uid-of-another'])) }),
      },
    })
    await world.add('persistentvolumes', { ...volume, metadata: { name: volume.metadata.name } })
  }
  const toggleClass = async () => {
    const name = among(['late', 'made', 'fast'] as const)
    const found = await store.get('storageclasses', { namespace: '', name })
    if (found !== undefined) return await store.delete('storageclasses', { namespace: '', name })
    const annotations = { 'storageclass.kubernetes.io/is-default-class': String(random() < 0.4) }
    return await world.add(
      'storageclasses',
      aStorageClass(name, { metadata: { name, annotations }, volumeBindingMode: classes[name] }),
    )
  }
  /** The scheduler gives a pod no node while its claim is being deleted. */
  const nodeFor = async (claimName: string, nodeName: string) => {
    const claim = await world.claim(claimName)
    return claim === undefined || claim.metadata.deletionTimestamp !== undefined ? '' : nodeName
  }
  const usePods = async () => {
    const pod = await oneOf('pods')
    if (pod === undefined || random() < 0.5) {
      const name = among(names)
      return await world.addPod(`p-${among(names)}`, name, await nodeFor(name, among(['', 'pi-01'])))
    }
    const key = { namespace: 'default', name: pod.metadata.name }
    if (random() < 0.6) return await store.delete('pods', key)
    if (pod.spec.nodeName) return await store.updateStatus('pods', { ...pod, status: { phase: 'Succeeded' } })
    const nodeName = await nodeFor(pod.spec.volumes?.[0]?.persistentVolumeClaim?.claimName ?? '', 'pi-02')
    return await store.update('pods', { ...pod, spec: { ...pod.spec, nodeName } })
  }
  /** Reserves a free volume for a claim that waits, or has it provisioned. */
  const schedule = async () => {
    const [claim, volume] = [await oneOf('persistentvolumeclaims'), await oneOf('persistentvolumes')]
    if (claim === undefined || claim.spec?.volumeName || classOfClaim(claim) !== 'late') return
    if (volume !== undefined && isFreeFor(volume, claim)) {
      const claimRef = claimRefTo(claim.metadata.name, claim.metadata.uid)
      const annotations = { ...volume.metadata.annotations, [boundByController]: 'yes' }
      const metadata = { ...volume.metadata, annotations }
      return await store.update('persistentvolumes', { ...volume, metadata, spec: { ...volume.spec, claimRef } })
    }
    const annotations = { ...claim.metadata.annotations, [selectedNode]: among(nodes) }
    return await store.update('persistentvolumeclaims', { ...claim, metadata: { ...claim.metadata, annotations } })
  }
  /** Makes what is asked for, and removes what it made and is released. */
  const provision = async () => {
    const volume = await oneOf('persistentvolumes')
    const isMine = volume !== undefined && hasAnnotation(volume, provisionedBy)
    if (isMine && volume.status?.phase === 'Released' && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
      return await world.remove('persistentvolumes', volume.metadata.name)
    }
    const claim = await oneOf('persistentvolumeclaims')
    if (claim === undefined || claim.spec?.volumeName || !hasAnnotation(claim, provisioner)) return
    const { status: _, ...made } = aStoredVolume(`pvc-${claim.metadata.uid}`, {
      spec: {
        accessModes: claim.spec?.accessModes ?? [],
        capacity: { storage: '3Gi' },
        storageClassName: classOfClaim(claim) ?? '',
        volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
        persistentVolumeReclaimPolicy: 'Delete',
        claimRef: claimRefTo(claim.metadata.name, claim.metadata.uid),
      },
    })
    const annotations = { [provisionedBy]: 'example.com/disk' }
    return await world.add('persistentvolumes', { ...made, metadata: { name: made.metadata.name, annotations } })
  }
  const freeVolume = async () => {
    const volume = await oneOf('persistentvolumes')
    if (volume === undefined || !['Released', 'Failed'].includes(volume.status?.phase ?? '')) return
    const { claimRef: _, ...spec } = volume.spec ?? {}
    return await store.update('persistentvolumes', { ...volume, spec })
  }
  const toggleNode = async () => {
    const key = { namespace: '', name: among(nodes) }
    if ((await store.get('nodes', key)) !== undefined) return await store.delete('nodes', key)
    return await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: key.name } })
  }
  const removeOne = async (resource: 'persistentvolumes' | 'persistentvolumeclaims') => {
    const object = await oneOf(resource)
    if (object !== undefined) await world.remove(resource, object.metadata.name)
  }
  const acts: readonly (() => Promise<unknown>)[] = [
    ...[addClaim, addClaim, addClaim, addVolume, addVolume, toggleClass, usePods, usePods, schedule, schedule],
    ...[provision, provision, provision, freeVolume, toggleNode],
    () => removeOne('persistentvolumes'),
    () => removeOne('persistentvolumeclaims'),
  ]
  return { act: () => ignoringConflicts(among(acts)) }
}

/** What holds at every moment: nothing that is used is removed. */
function guarded(t: Test, inner: Store): Store {
  return {
    ...inner,
    async delete(resource, key, preconditions) {
      if (resource === 'persistentvolumeclaims') {
        const users = (await inner.list('pods')).items.filter(
          ({ spec }) => spec.nodeName && spec.volumes?.some((one) => one.persistentVolumeClaim?.claimName === key.name),
        )
        if (users.length > 0) t.fail(`claim ${key.name} was removed from under a pod`)
      }
      if (resource === 'persistentvolumes') {
        const volume = await inner.get('persistentvolumes', key)
        if (volume?.status?.phase === 'Bound') t.fail(`volume ${key.name} was removed while it was bound`)
      }
      return await inner.delete(resource, key, preconditions)
    },
  }
}

/** What is wrong when nothing is left to do. */
async function problemsAtRest({ store }: VolumeWorld): Promise<readonly string[]> {
  const claims = (await store.list('persistentvolumeclaims')).items
  const volumes = (await store.list('persistentvolumes')).items
  const pods = (await store.list('pods')).items
  const present = new Set((await store.list('nodes')).items.map(({ metadata }) => metadata.name))
  const storageClasses = new Map((await store.list('storageclasses')).items.map((one) => [one.metadata.name, one]))
  const isDelayed = (claim: StoredClaim) =>
    storageClasses.get(classOfClaim(claim) ?? '')?.volumeBindingMode === 'WaitForFirstConsumer'
  const problems: string[] = []
  const must = (holds: boolean, problem: string) => void (holds || problems.push(problem))
  for (const claim of claims) {
    const { name, deletionTimestamp, finalizers = [] } = claim.metadata
    claimAgrees(claim, volumes, isDelayed(claim), must)
    const isUsed = pods.some(
      ({ spec }) => spec.nodeName && spec.volumes?.some((one) => one.persistentVolumeClaim?.claimName === name),
    )
    must(deletionTimestamp === undefined || isUsed, `claim ${name} is not used, and not removed`)
    const selected = claim.spec?.volumeName ? undefined : claim.metadata.annotations?.[selectedNode]
    must(selected === undefined || present.has(selected), `claim ${name} waits for a node that is gone`)
    must(finalizers.includes(volumeFinalizers.claim), `claim ${name} is not protected`)
  }
  for (const volume of volumes) volumeAgrees(volume, claims, must)
  const taken = claims.filter(({ status }) => status?.phase === 'Bound').map(({ spec }) => spec?.volumeName)
  must(new Set(taken).size === taken.length, `two claims are bound to one volume: ${taken}`)
  return problems
}

type Must = (holds: boolean, problem: string) => void

function claimAgrees(claim: StoredClaim, volumes: readonly StoredVolume[], isDelayed: boolean, must: Must): void {
  const { name, uid } = claim.metadata
  const { phase } = claim.status ?? {}
  const volume = volumes.find(({ metadata }) => metadata.name === claim.spec?.volumeName)
  const isItsOwn = volume?.spec?.claimRef?.uid === uid
  if (phase === 'Bound') {
    must(isItsOwn, `claim ${name} is bound to no volume of its own`)
    must(volume?.status?.phase === 'Bound', `the volume of claim ${name} is ${volume?.status?.phase}`)
  }
  if (phase === 'Lost') must(!isItsOwn, `claim ${name} is not lost`)
  if (phase === 'Pending' && !claim.spec?.volumeName && !isDelayed) {
    const fitting = volumes.filter((one) => isFreeFor(one, claim)).map(({ metadata }) => metadata.name)
    must(fitting.length === 0, `claim ${name} waits, and ${fitting} fit it`)
  }
}

function volumeAgrees(volume: StoredVolume, claims: readonly StoredClaim[], must: Must): void {
  const { name, deletionTimestamp } = volume.metadata
  const { phase } = volume.status ?? {}
  const claim = claims.find(({ metadata }) => metadata.uid === volume.spec?.claimRef?.uid)
  const hasThis = claim?.spec?.volumeName === name
  must(deletionTimestamp === undefined || phase === 'Bound', `volume ${name} is ${phase}, and not removed`)
  if (phase === 'Bound') must(hasThis, `volume ${name} is bound to no claim`)
  if (phase === 'Released' || phase === 'Failed') must(!hasThis, `volume ${name} is ${phase}, and its claim exists`)
  if (claim === undefined && volume.spec?.claimRef?.uid)
    must(phase !== 'Available', `volume ${name} has a claim that is gone`)
  must(phase !== 'Pending', `volume ${name} was not visited`)
}

function isFreeFor(volume: StoredVolume, claim: StoredClaim): boolean {
  return (
    volume.spec?.claimRef === undefined &&
    volume.metadata.deletionTimestamp === undefined &&
    volume.status?.phase === 'Available' &&
    isLargeEnoughFor(volume, claim) &&
    hasVolumeModeOf(volume, claim) &&
    hasAccessModesOf(volume, claim) &&
    classOfVolume(volume) === (classOfClaim(claim) ?? '')
  )
}

/** Records each volume that the binder reserves, with the free ones that were a better choice. */
function watchingChoices(inner: Store) {
  const choices: { readonly volume: string; readonly better: readonly string[] }[] = []
  const store: Store = {
    ...inner,
    async update(resource, object) {
      const volume = resource === 'persistentvolumes' ? (object as PersistentVolume) : undefined
      const claims = volume?.spec?.claimRef === undefined ? [] : (await inner.list('persistentvolumeclaims')).items
      const claim = claims.find(({ metadata }) => metadata.uid === volume?.spec?.claimRef?.uid)
      if (volume !== undefined && claim !== undefined && !claim.spec?.volumeName) {
        const before = await inner.get('persistentvolumes', { namespace: '', name: volume.metadata.name ?? '' })
        const modes = String(volume.spec?.accessModes)
        const better = (await inner.list('persistentvolumes')).items.filter(
          (one) =>
            before?.spec?.claimRef === undefined &&
            isFreeFor(one, claim) &&
            String(one.spec?.accessModes) === modes &&
            compareQuantities(capacityOfVolume(one), capacityOfVolume(volume)) < 0,
        )
        choices.push({ volume: volume.metadata.name ?? '', better: better.map(({ metadata }) => metadata.name) })
      }
      return await inner.update(resource, object)
    },
  }
  return { store, choices }
}

type Choices = ReturnType<typeof watchingChoices>['choices']

async function wrongChoices(world: VolumeWorld, choices: Choices): Promise<readonly string[]> {
  const problems: string[] = []
  for (const { volume, better } of choices) {
    for (const name of better) {
      // Another claim had taken it a moment before.
      const one = await world.volume(name)
      if (one?.spec !== undefined && one.spec.claimRef === undefined)
        problems.push(`${volume} was chosen before ${name}`)
    }
  }
  return problems
}

test('whatever people do and wherever the process is killed, claims and volumes agree at rest', async (t) => {
  let [crashes, bound, chosen] = [0, 0, 0]
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed)
    let crashing: ReturnType<typeof crashingStore> | undefined
    let watching: ReturnType<typeof watchingChoices> | undefined
    const world = volumeWorld(t, {
      store(inner) {
        watching = watchingChoices(guarded(t, inner))
        crashing = crashingStore(watching.store)
        return crashing.store
      },
    })
    if (crashing === undefined || watching === undefined) throw new Error('no store')
    const { act } = actors(world, random)
    const liveOnce = async (end: () => Promise<void>) => {
      for (let step = 0; step < 6; step++) {
        await act()
        if (random() < 0.5) await world.settle(random() < 0.5 ? 0 : 50)
      }
      await world.settle()
      await end()
    }
    for (let life = 0; life < 8; life++) {
      crashing.allow(Math.floor(random() * 8))
      await liveOnce(world.start())
      if (crashing.crashed()) crashes++
    }
    crashing.allow(Number.POSITIVE_INFINITY)
    watching.choices.length = 0
    const end = world.start()
    await world.settle(1_000)
    for (let step = 0; step < 16; step++) {
      await act()
      await world.settle()
    }
    await world.settle(1_000)
    for (const problem of await problemsAtRest(world)) t.fail(`seed ${seed}: ${problem}`)
    for (const problem of await wrongChoices(world, watching.choices)) t.fail(`seed ${seed}: ${problem}`)
    chosen += watching.choices.length
    const written = crashing.written()
    await world.settle(60_000)
    if (crashing.written() !== written) t.fail(`seed ${seed}: it writes at rest`)
    bound += (await world.store.list('persistentvolumeclaims')).items.filter(
      ({ status }) => status?.phase === 'Bound',
    ).length
    await end()
  }
  t.ok(crashes > 150 && bound > 40 && chosen > 10, `${crashes} crashes, ${bound} bound, ${chosen} chosen`)
})
