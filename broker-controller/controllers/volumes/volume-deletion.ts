/**
 * Loop: deletes the volumes of pools and on shares whose claims are gone, by the policy Delete. First the object is deleted and stays by its
 * finalizer; then its node gets the order (`broker/outbox/volumes-outbox.ts`), and moves the data to the trash. For a share it is any ready node
 * that mounts it. The object goes when the node has confirmed it.
 */
import { isApiError } from '../../../api/api-error.ts'
import { withFinalizer } from '../../../api/deletion/finalizers.ts'
import { planDeletion } from '../../../api/deletion/object-deletion.ts'
import { labelledPools } from '../../../api/storage/pools.ts'
import {
  deletingNodeAnnotation,
  haveCommonFolder,
  isOnClassShare,
  onDeleteOf,
  shareOfVolume,
} from '../../../api/storage/shares.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { poolOfVolume } from '../../../api/storage/volume-place.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { RestoreHold } from '../../store/checkpoints/restore-hold.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keySets } from '../../store/indexes/key-sets.ts'
import { type InformerNeeds, informer } from '../../store/informer.ts'
import { removeFinalizer } from '../../store/rewrite.ts'
import type { StoreOrigin } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import { isReady } from '../node-lifecycle/zones.ts'
import type { VolumeEvent } from './claim-plan.ts'
import { type Holder, planVolumeDeletion, type ShareFacts } from './deletion-plan.ts'
import type { StoredVolume } from './volume-index.ts'
import { volumeWrites } from './volume-writes.ts'

export type VolumeDeletionNeeds = InformerNeeds & {
  readonly events: EventRecorder
  readonly storage: Pick<StorageBoard, 'reportOf' | 'onReport'>
  readonly origin: Pick<StoreOrigin, 'id'>
  readonly hold?: RestoreHold
}

/** Another writer was faster: its write is visible by then. */
const conflictMs = 20
/** A node that is there has confirmed by then; what a volume waits for is recorded after it, and so often. */
const patienceMs = 15_000
const repeatMs = 10 * 60_000

/** The volumes of pools and their nodes. `add`: a volume is to be visited. */
function deletionSources(needs: VolumeDeletionNeeds, add: (name: string) => void) {
  const { storage, origin, hold } = needs
  /** Volumes that are being deleted, by pool; those on shares by ''. */
  const leaving = keySets()
  /** The node with the label of the pool. */
  const holders = new Map<string, string>()

  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const volume = present ?? previous
    const pool = volume && poolOfVolume(volume)
    if (volume === undefined) return
    const { name, finalizers = [] } = volume.metadata
    if (pool === undefined && !isOnClassShare(volume) && !finalizers.includes(volumeDataFinalizer)) return
    const key = pool ?? ''
    if (present?.metadata.deletionTimestamp !== undefined) leaving.add(key, name)
    else leaving.delete(key, name)
    add(name)
  })
  const nodes = informer(needs, 'nodes', (present, previous) => {
    const [before, now] = [previous, present].map((one) => (one === undefined ? [] : labelledPools(one)))
    const name = (present ?? previous)?.metadata.name ?? ''
    for (const pool of before ?? []) if (holders.get(pool) === name) holders.delete(pool)
    for (const pool of now ?? []) holders.set(pool, name)
  })
  const chosenFor = (name: string) =>
    volumes.get({ namespace: '', name })?.metadata.annotations?.[deletingNodeAnnotation]
  storage.onReport((node) => {
    const found = nodes.get({ namespace: '', name: node })
    const pools = found === undefined ? [] : labelledPools(found)
    for (const name of pools.flatMap((pool) => [...leaving.of(pool)])) add(name)
    for (const name of leaving.of('')) if ([undefined, node].includes(chosenFor(name))) add(name)
  })
  hold?.onRelease(() => {
    for (const { metadata } of volumes.all()) add(metadata.name)
  })
  return {
    volumes,
    nodes,
    holderOf(volume: StoredVolume): Holder | undefined {
      const pool = poolOfVolume(volume)
      const name = pool === undefined ? volume.metadata.annotations?.[deletingNodeAnnotation] : holders.get(pool)
      const node = name === undefined ? undefined : nodes.get({ namespace: '', name })
      if (node === undefined) return undefined
      return { node: node.metadata.name, isReady: isReady(node), report: storage.reportOf(node.metadata.name) }
    },
    shareFacts(volume: StoredVolume): ShareFacts | undefined {
      const share = shareOfVolume(volume)
      if (share === undefined || volume.metadata.deletionTimestamp === undefined) return undefined
      if (onDeleteOf(volume) === 'retain') return undefined
      const mounts = (name: string) => storage.reportOf(name)?.shares.includes(share.kind) === true
      const candidates = [...nodes.all()].filter((node) => isReady(node) && mounts(node.metadata.name))
      const [candidate] = candidates.map(({ metadata }) => metadata.name).sort()
      const sharedWith = [...volumes.all()].find((other) => {
        const its = other.metadata.uid === volume.metadata.uid ? undefined : shareOfVolume(other)
        return its !== undefined && haveCommonFolder(share, its)
      })?.metadata.name
      return { store: origin.id, candidate, sharedWith }
    },
  }
}

export function volumeDeletion(needs: VolumeDeletionNeeds): Loop {
  const { store, clock, log, hold } = needs
  const queue = workQueue(clock)
  const writes = volumeWrites(needs)
  const { volumes, nodes, holderOf, shareFacts } = deletionSources(needs, (name) => queue.add(name))

  const hasClaim = async ({ metadata, spec }: StoredVolume): Promise<boolean> => {
    const { namespace = '', name = '', uid } = spec?.claimRef ?? {}
    if (name === '' || uid === undefined) return false
    const claim = await store.get('persistentvolumeclaims', { namespace, name })
    return claim?.metadata.uid === uid && [metadata.name, ''].includes(claim.spec?.volumeName ?? '')
  }

  const wait = async (volume: StoredVolume, event: VolumeEvent): Promise<Reconciled> => {
    const waitedMs = clock.wallMs() - Date.parse(volume.metadata.deletionTimestamp ?? '')
    if (event.type === 'Normal' && waitedMs >= 0 && waitedMs < patienceMs) return { requeueAfterMs: patienceMs }
    await writes.record(volume, event)
    return { requeueAfterMs: repeatMs }
  }
  const visit = async (name: string): Promise<Reconciled> => {
    for (const source of [volumes, nodes]) source.catchUp()
    const volume = volumes.get({ namespace: '', name })
    if (volume === undefined) {
      writes.forget(name)
      return undefined
    }
    const isHeld = hold?.holds('statefulsets') === true
    const share = shareFacts(volume)
    const facts = {
      volume,
      hasClaim: await hasClaim(volume),
      holder: holderOf(volume),
      isHeld,
      ...(share && { share }),
    }
    const plan = planVolumeDeletion(facts)
    const { annotations } = volume.metadata
    switch (plan.plan) {
      case 'nothing':
        return undefined
      case 'delete': {
        // Over the version that was decided on: who freed the volume meanwhile, or took it, wins.
        const leaving = planDeletion(withFinalizer(volume, volumeDataFinalizer), { nowMs: clock.wallMs() })
        if (!leaving.remove) await store.update('persistentvolumes', leaving.object as StoredVolume)
        return undefined
      }
      case 'choose': {
        const metadata = { ...volume.metadata, annotations: { ...annotations, [deletingNodeAnnotation]: plan.node } }
        await store.update('persistentvolumes', { ...volume, metadata })
        return undefined
      }
      case 'release':
        await removeFinalizer({ store, clock }, 'persistentvolumes', volume, volumeDataFinalizer)
        return undefined
      case 'wait':
        return plan.event && wait(volume, plan.event)
    }
  }
  const reconcile = async (name: string): Promise<Reconciled> => {
    try {
      return await visit(name)
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return { requeueAfterMs: conflictMs }
      throw error
    }
  }

  return {
    name: 'volume-deletion',
    run: (signal) =>
      runLoops(
        [
          { name: 'volumes', run: volumes.run },
          { name: 'nodes', run: nodes.run },
          {
            name: 'work',
            async run(stop) {
              await Promise.all([volumes.listed, nodes.listed])
              if (!stop.aborted) await runController({ name: 'volume-deletion', reconcile }, queue, log, stop, 5)
            },
          },
        ],
        signal,
        log,
      ),
  }
}
