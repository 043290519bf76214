/**
 * Loop: binds claims and volumes to each other, and follows their phases (pkg/controller/volume/persistentvolume of Kubernetes).
 * One queue of claims and volumes. A visit takes the steps that the objects show; one that is cut off is completed by the next.
 */
import { isApiError } from '../../../api/api-error.ts'
import { defaultStorageClass } from '../../../api/storage/storage-class.ts'
import { classOfClaim } from '../../../api/storage/volume-matching.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { eachInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { type WorkQueue, workQueue } from '../../../daemon/work-queue.ts'
import type { RestoreHold } from '../../store/checkpoints/restore-hold.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type Informer, informer, keyFrom, keyText } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import { nextBindWrite, type StoredClaim } from './bind-writes.ts'
import { type BinderKeys, binderKeys, readKey, textOfKey } from './binder-keys.ts'
import { type ClaimPlan, planClaim } from './claim-plan.ts'
import { type ClaimPods, hasLetGo } from './claim-pods.ts'
import { type StoredVolume, type VolumeIndex, volumeIndex } from './volume-index.ts'
import { planVolume } from './volume-plan.ts'
import { type VolumeWrites, volumeWrites } from './volume-writes.ts'

export type VolumeBinderNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** Claims and volumes may still come back after a restore; undefined: the store was not restored. */
  readonly hold?: RestoreHold
}

/** A write waits until it is kept, a status 100 ms for others: so many at once are kept together. */
const visitsAtOnce = 200
/** Volumes that become free within moments are one search of the claims that wait. */
const debounceMs = 20
/** Another writer was faster: its write is visible by then. */
const conflictMs = 20
/** Events are kept for an hour: what a claim waits for is recorded again so often. */
const repeatMs = 5 * 60_000

export function volumeBinder(needs: VolumeBinderNeeds, pods: ClaimPods): Loop {
  return { name: 'volume-binder', run: (signal) => runBinder(needs, pods, signal) }
}

type Sources = {
  readonly claims: Informer<'persistentvolumeclaims'>
  readonly volumes: Informer<'persistentvolumes'>
  readonly classes: Informer<'storageclasses'>
  readonly nodes: Informer<'nodes'>
  readonly pods: ClaimPods
  readonly index: VolumeIndex
  readonly keys: BinderKeys
}

async function runBinder(needs: VolumeBinderNeeds, pods: ClaimPods, signal: AbortSignal): Promise<void> {
  const { clock, log, hold } = needs
  const queue = workQueue(clock)
  const [index, keys] = [volumeIndex(), binderKeys()]
  const add = (key: Parameters<typeof textOfKey>[0]) => {
    if (key.kind === 'waiting') queue.addAfter(textOfKey(key), debounceMs)
    else queue.add(textOfKey(key))
  }
  const claims = informer(needs, 'persistentvolumeclaims', (present, previous) => {
    for (const key of keys.ofClaim(present, previous)) add(key)
  })
  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    if (present !== undefined) index.put(present)
    else if (previous !== undefined) index.remove(previous.metadata.name)
    for (const key of keys.ofVolume(present, previous)) add(key)
  })
  const classes = informer(needs, 'storageclasses', (present, previous) => {
    // Those without a class get it, if it is the default one now.
    for (const key of new Set([(present ?? previous)?.metadata.name ?? '', ''])) add({ kind: 'waiting', key })
  })
  const nodes = informer(needs, 'nodes', (present, previous) => {
    if (present === undefined) for (const key of keys.ofNode(previous?.metadata.name ?? '')) add(key)
  })
  pods.onChange((claimKeys) => {
    for (const claim of claimKeys) for (const key of keys.ofPodsClaim(claim)) add(key)
  })
  hold?.onRelease(() => {
    for (const { metadata } of claims.all()) add({ kind: 'claim', key: keyText(metadata) })
    for (const { metadata } of volumes.all()) add({ kind: 'volume', key: metadata.name })
  })

  const sources = { claims, volumes, classes, nodes, pods, index, keys }
  const reconcile = visits(needs, sources, queue)
  const work = async (until: AbortSignal) => {
    await Promise.all([claims, volumes, classes, nodes, pods].map(({ listed }) => listed))
    if (!until.aborted) await runController({ name: 'volume-binder', reconcile }, queue, log, until, visitsAtOnce)
  }
  const loops = [
    { name: 'claims', run: claims.run },
    { name: 'volumes', run: volumes.run },
    { name: 'classes', run: classes.run },
    { name: 'nodes', run: nodes.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

function visits(needs: VolumeBinderNeeds, sources: Sources, queue: WorkQueue) {
  const { claims, volumes, classes, nodes, pods, keys } = sources
  const writes = volumeWrites(needs)
  const visitor = { needs, sources, writes, queue, bindings: bindingsUnderWay(queue) }
  const visit = async (text: string): Promise<Reconciled> => {
    for (const source of [claims, volumes, classes, nodes, pods]) source.catchUp()
    const { kind, key } = readKey(text)
    if (kind === 'claim') return await visitClaim(visitor, key)
    if (kind === 'volume') return await visitVolume(visitor, key)
    await eachInTurns([...keys.waiting(key)], (claim) => queue.add(textOfKey({ kind: 'claim', key: claim })))
    return undefined
  }
  return async (text: string): Promise<Reconciled> => {
    try {
      return await visit(text)
    } catch (error) {
      // Scheduler, provisioners and people write the same objects.
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return { requeueAfterMs: conflictMs }
      throw error
    }
  }
}

type Visitor = {
  readonly needs: VolumeBinderNeeds
  readonly sources: Sources
  readonly writes: VolumeWrites
  readonly queue: WorkQueue
  readonly bindings: Bindings
}

async function visitClaim(visitor: Visitor, key: string): Promise<Reconciled> {
  const { needs, sources, writes, bindings } = visitor
  const claim = sources.claims.get(keyFrom(key))
  if (claim === undefined) {
    writes.forget(key)
    return undefined
  }
  const plan = claimPlan(needs, sources, claim, bindings.isTaken)
  if (plan.bind !== undefined) {
    if (nextBindWrite(claim, plan.bind, needs.clock.wallMs()) === undefined) return undefined
    return await bindings.bind(plan.bind.metadata.name, () => bindTogether(visitor, claim, plan.bind))
  }
  if (plan.write !== undefined) await writes.write(plan.write)
  if (plan.event === undefined) return undefined
  await yieldTurn()
  await writes.record(claim, plan.event)
  return { requeueAfterMs: repeatMs }
}

function claimPlan(
  { hold }: VolumeBinderNeeds,
  { volumes, classes, nodes, pods, index }: Sources,
  claim: StoredClaim,
  isTaken: (name: string) => boolean,
): ClaimPlan {
  const className = classOfClaim(claim) ?? ''
  const { volumeName = '' } = claim.spec ?? {}
  const waitingPods = () =>
    [...pods.podsOf(claimKeyOf(claim))]
      .filter((pod) => (pod.spec.nodeName ?? '') === '' && !hasLetGo(pod))
      .map(({ metadata }) => metadata.name)
      .sort()
  const isHeld = hold?.holds('statefulsets') === true
  const isHeldVolume = (name: string) => {
    const volume = volumes.get({ namespace: '', name })
    return volume !== undefined && hold?.holdsUnbound(volume) === true
  }
  // A claim may be compared with thousands of volumes.
  const isUnavailable = isHeld ? (name: string) => isTaken(name) || isHeldVolume(name) : isTaken
  return planClaim({
    claim,
    named: volumeName === '' ? undefined : volumes.get({ namespace: '', name: volumeName }),
    fitting: (delayed) => index.choose(claim, { delayed, isTaken: isUnavailable }),
    storageClass: className === '' ? undefined : classes.get({ namespace: '', name: className }),
    defaultClass: classOfClaim(claim) === undefined ? defaultStorageClass([...classes.all()]) : undefined,
    waitingPods,
    hasNode: (name) => nodes.get({ namespace: '', name }) !== undefined,
    isHeld,
    mayBeBound: hold?.holdsUnbound(claim) === true,
  })
}

function claimKeyOf({ metadata: { namespace = '', name } }: StoredClaim) {
  return { namespace, name }
}

/** Each write over the object that the one before it returned: who wrote in between wins, and the next visit decides again. */
async function bindTogether(
  { needs, writes }: Visitor,
  givenClaim: StoredClaim,
  givenVolume: StoredVolume | undefined,
) {
  let [claim, volume] = [givenClaim, givenVolume]
  while (volume !== undefined) {
    const next = nextBindWrite(claim, volume, needs.clock.wallMs())
    if (next === undefined) return
    // The store answers many writes in one turn.
    await yieldTurn()
    if (next.resource === 'persistentvolumes') volume = await writes.writeVolume(next)
    else claim = await writes.writeClaim(next)
  }
}

async function visitVolume(visitor: Visitor, name: string): Promise<Reconciled> {
  const { needs, sources, writes, queue, bindings } = visitor
  const { volumes, pods } = sources
  const { claimRef } = volumes.get({ namespace: '', name })?.spec ?? {}
  const claimKey = { namespace: claimRef?.namespace ?? '', name: claimRef?.name ?? '' }
  // Not from the cache: a claim that was bound just now must not be taken for one that is gone.
  const claim = claimRef?.uid ? await needs.store.get('persistentvolumeclaims', claimKey) : undefined
  volumes.catchUp()
  const volume = volumes.get({ namespace: '', name })
  if (volume === undefined) {
    writes.forget(name)
    return undefined
  }
  const isSame = volume.spec?.claimRef?.uid === claimRef?.uid
  if (!isSame || bindings.isDeferred(name)) return isSame ? undefined : { requeueAfterMs: 1 }
  const plan = planVolume({
    volume,
    claim,
    usedBy: () =>
      [...pods.podsOf(claimKey)]
        .filter((pod) => !hasLetGo(pod))
        .map(({ metadata }) => keyText(metadata))
        .sort(),
    isHeld: needs.hold?.holds('statefulsets') === true,
    nowMs: needs.clock.wallMs(),
  })
  if (plan.visitClaim) queue.add(textOfKey({ kind: 'claim', key: keyText(claimKey) }))
  if (plan.write !== undefined) await writes.write(plan.write)
  if (plan.event !== undefined) await writes.record(volume, plan.event)
  if (plan.claimEvent !== undefined && claim !== undefined) await writes.record(claim, plan.claimEvent)
  return undefined
}

interface Bindings {
  /** Whether another claim is about to get this volume. */
  readonly isTaken: (volume: string) => boolean
  /** Whether it is being bound; then it is visited after that. */
  isDeferred(volume: string): boolean
  /** Comes back later when another claim is being bound to the volume. */
  bind(volume: string, act: () => Promise<void>): Promise<Reconciled>
}

/** Volumes that are being bound, in this process: a second claim chooses another one at once, without a conflict. */
function bindingsUnderWay(queue: WorkQueue): Bindings {
  const taken = new Set<string>()
  const deferred = new Set<string>()
  return {
    isTaken: taken.has.bind(taken),
    isDeferred(volume) {
      if (taken.has(volume)) deferred.add(volume)
      return taken.has(volume)
    },
    async bind(volume, act) {
      if (taken.has(volume)) return { requeueAfterMs: conflictMs }
      taken.add(volume)
      try {
        await act()
      } finally {
        taken.delete(volume)
        if (deferred.delete(volume)) queue.add(textOfKey({ kind: 'volume', key: volume }))
      }
      return undefined
    },
  }
}
