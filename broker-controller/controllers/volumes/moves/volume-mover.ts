/**
 * Loop: moves volumes to the pools of other nodes, for people who ask for it by an annotation. `move-plan.ts` decides; orders for the nodes follow
 * from what is written (`api/storage/volume-move.ts`), and copies go through the controller.
 */
import { randomBytes } from 'node:crypto'
import { isApiError } from '../../../../api/api-error.ts'
import { reportedPools } from '../../../../api/storage/pools.ts'
import { moveOf, moveToAnnotation, oldCopyOf, type VolumeMove } from '../../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import { type Reconciled, runController } from '../../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { workQueue } from '../../../../daemon/work-queue.ts'
import type { SessionBoard } from '../../../sessions/session-board.ts'
import type { RestoreHold } from '../../../store/checkpoints/restore-hold.ts'
import type { EventRecorder } from '../../../store/event-recorder.ts'
import { type InformerNeeds, informer } from '../../../store/informer.ts'
import type { StorageBoard } from '../../../usage/storage-board.ts'
import type { VolumeEvent } from '../claim-plan.ts'
import type { ClaimPods } from '../claim-pods.ts'
import { stopPods } from '../pod-stops.ts'
import { poolHolders } from '../pool-holders.ts'
import type { StoredVolume } from '../volume-index.ts'
import { volumeWrites } from '../volume-writes.ts'
import { type MoveFacts, planMove } from './move-plan.ts'
import { type MoveNode, planStart, sourceReport, targetReport } from './move-start.ts'
import { withBegunMove, withMove, withNewPlace, withoutMove } from './move-writes.ts'
import { type MoveTransfers, moveTransfers } from './transfers.ts'

export type VolumeMoverNeeds = InformerNeeds & {
  readonly events: EventRecorder
  readonly storage: Pick<StorageBoard, 'reportOf' | 'onReport' | 'copiedBytes'>
  readonly sessions: Pick<SessionBoard, 'open'>
  readonly hold?: RestoreHold
}

/** Another writer was faster: its write is visible by then. */
const conflictMs = 20
/** A node that becomes ready, and pods that come, are noticed by then. */
const roundMs = 15_000

/** The volumes that are being moved, or are to be, and the nodes of pools. `visit`: a volume is to be looked at. */
function moveSources(needs: VolumeMoverNeeds, visit: (name: string) => void) {
  const { storage, hold } = needs
  const moving = new Set<string>()
  const addAll = () => {
    for (const name of moving) visit(name)
  }
  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const { name } = (present ?? previous)?.metadata ?? { name: '' }
    const isMoving = present !== undefined && (moveOf(present) !== undefined || wishOf(present) !== undefined)
    if (isMoving) moving.add(name)
    if (moving.has(name)) visit(name)
    if (!isMoving) moving.delete(name)
  })
  const nodes = informer(needs, 'nodes', () => undefined)
  storage.onReport(addAll)
  hold?.onRelease(addAll)
  return { volumes, nodes, ...poolHolders(nodes, storage) }
}

/** Carries out what is decided about one volume. Throws Conflict if another writer was faster. */
function moveSteps(needs: VolumeMoverNeeds, pods: ClaimPods, sources: MoveSources, transfers: MoveTransfers) {
  const { store, storage } = needs
  const { named, of: holderOf } = sources
  const writes = volumeWrites(needs)
  const record = async (volume: StoredVolume, event: VolumeEvent) => {
    await writes.record(volume, event)
    const { namespace = '', name = '', uid } = volume.spec?.claimRef ?? {}
    const claim = name === '' ? undefined : await store.get('persistentvolumeclaims', { namespace, name })
    if (claim !== undefined && claim.metadata.uid === uid) await writes.record(claim, event)
  }
  const waiting = async (volume: StoredVolume, message: string): Promise<Reconciled> => {
    await record(volume, { type: 'Normal', reason: 'VolumeMoveWaits', message })
    return { requeueAfterMs: roundMs }
  }

  const begin = async (volume: StoredVolume, to: string): Promise<Reconciled> => {
    const { storageClassName: name = '' } = volume.spec ?? {}
    const storageClass = name === '' ? undefined : await store.get('storageclasses', { namespace: '', name })
    const source = holderOf(poolOfVolume(volume))
    const start = planStart(volume, to, { source, target: named(to), storageClass })
    if ('wait' in start) return waiting(volume, start.wait)
    if ('refuse' in start) {
      await store.update('persistentvolumes', withoutMove(volume))
      await record(volume, { type: 'Warning', reason: 'VolumeMoveFailed', message: start.refuse })
      return undefined
    }
    const used = storage
      .reportOf(source?.node.metadata.name ?? '')
      ?.volumes.find(({ uid }) => uid === volume.metadata.uid)
    const id = randomBytes(4).toString('hex')
    await store.update('persistentvolumes', withBegunMove(volume, start.start, { id, bytes: used?.usedBytes }))
    return undefined
  }

  const wait = async (volume: StoredVolume, move: VolumeMove, facts: MoveFacts, ends: Ends): Promise<Reconciled> => {
    const { phase, round } = move
    const isSent = phase === 'copy' || facts.source?.sent?.round === round
    const isCopied = facts.target?.received?.round === round && isSent
    if (['copy', 'delta'].includes(phase) && !isCopied) transfers.ensure(volume, move, ends)
    const bare = phase === 'hold' ? await stopPods(needs, pods, volume) : undefined
    if (bare !== undefined)
      return waiting(volume, `pod "${bare.metadata.name}" has no controller that re-creates it: delete it`)
    const reason = [ends.source, ends.target]
      .map((one) => one?.report?.moves?.get(volume.metadata.uid)?.waits)
      .find(Boolean)
    return reason === undefined ? { requeueAfterMs: roundMs } : waiting(volume, reason)
  }

  const advance = async (volume: StoredVolume, move: VolumeMove): Promise<Reconciled> => {
    const { uid, name, deletionTimestamp } = volume.metadata
    const ends: Ends = { source: holderOf(move.from.pool), target: holderOf(move.to.pool) }
    const sourceName = ends.source?.node.metadata.name ?? ''
    const isDiscarded = storage.reportOf(sourceName)?.done.has(oldCopyOf(uid, move)) === true
    const isWanted = wishOf(volume) === move.to.node && deletionTimestamp === undefined
    const facts: MoveFacts = {
      move,
      isCancelled: !isWanted || volume.status?.phase !== 'Bound',
      source: sourceReport(ends.source?.report?.moves?.get(uid), { id: move.id, isDiscarded }),
      target: targetReport(ends.target?.report?.moves?.get(uid)),
    }
    const step = planMove(facts)
    if (step.step !== 'wait') await transfers.stop(name)
    switch (step.step) {
      case 'wait':
        return wait(volume, move, facts, ends)
      case 'enter': {
        const { phase, round, why } = step
        await store.update('persistentvolumes', withMove(volume, { ...move, phase, round, ...(why && { why }) }))
        return undefined
      }
      case 'rewrite': {
        const pool = ends.target && reportedPools(ends.target.node).find(({ id }) => id === move.to.pool)
        if (pool === undefined)
          return waiting(volume, `node "${move.to.node}" does not report the pool ${move.to.pool}`)
        await store.update('persistentvolumes', withNewPlace(volume, move, pool))
        return undefined
      }
      case 'end': {
        const ended = await store.update('persistentvolumes', withoutMove(volume))
        storage.copiedBytes.delete(uid)
        await record(ended, endEvent(move, step.isMoved))
        return undefined
      }
    }
  }

  return { begin, advance }
}

export function volumeMover(needs: VolumeMoverNeeds, pods: ClaimPods): Loop {
  const { clock, log, hold } = needs
  const queue = workQueue(clock)
  const sources = moveSources(needs, (name) => queue.add(name))
  const { volumes, nodes } = sources
  const transfers = moveTransfers(needs, (name, waitMs) => queue.addAfter(name, waitMs))
  const { begin, advance } = moveSteps(needs, pods, sources, transfers)

  const beginWanted = async (volume: StoredVolume): Promise<Reconciled> => {
    const wish = wishOf(volume)
    return wish === undefined ? undefined : await begin(volume, wish)
  }
  const reconcile = async (name: string): Promise<Reconciled> => {
    for (const source of [volumes, nodes, pods]) source.catchUp()
    const volume = volumes.get({ namespace: '', name })
    const move = volume && moveOf(volume)
    if (move === undefined) await transfers.stop(name)
    if (volume === undefined || hold?.holds('statefulsets') === true) return undefined
    try {
      return await (move === undefined ? beginWanted(volume) : advance(volume, move))
    } catch (error) {
      if (!isOutdated(error)) throw error
      return { requeueAfterMs: conflictMs }
    }
  }

  return {
    name: 'volume-mover',
    run: (signal) =>
      runLoops(
        [
          { name: 'volumes', run: volumes.run },
          { name: 'nodes', run: nodes.run },
          {
            name: 'work',
            async run(stop) {
              await Promise.all([volumes.listed, nodes.listed, pods.listed])
              if (!stop.aborted) await runController({ name: 'volume-mover', reconcile }, queue, log, stop, 2)
              await transfers.stopAll()
            },
          },
        ],
        signal,
        log,
      ),
  }
}

type MoveSources = ReturnType<typeof moveSources>
type Ends = { readonly source: MoveNode | undefined; readonly target: MoveNode | undefined }

function wishOf({ metadata: { annotations = {} } }: StoredVolume): string | undefined {
  return annotations[moveToAnnotation]
}

function endEvent({ to, why = '' }: VolumeMove, isMoved: boolean): VolumeEvent {
  if (!isMoved) return { type: 'Warning', reason: 'VolumeMoveFailed', message: `the data stays where it was: ${why}` }
  const message = `the data is on node "${to.node}"; the old copy is in the trash`
  return { type: 'Normal', reason: 'VolumeMoved', message }
}

/** Another writer was faster. */
function isOutdated(error: unknown): boolean {
  return isApiError(error, 'Conflict') || isApiError(error, 'NotFound')
}
