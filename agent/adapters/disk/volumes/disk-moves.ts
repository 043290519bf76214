/** VolumeMoves and VolumeCopies on the pool of this machine. */
import { lstat } from 'node:fs/promises'
import type { CopyResult, MoveReport, NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { withinOr } from '../../../../daemon/deadline.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import type { VolumeCopies, VolumeMoves, WantedCopy } from '../../../pods/volumes/volume-moves.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { Room } from '../../../pods/volumes/volume-trash.ts'
import { filesystemUsage } from '../filesystem-usage.ts'
import { copyResult } from './copy-digest.ts'
import { folderOfVolume, isOutOfSpace, noRoom, roomProblem, syncFilesystem } from './pool-places.ts'
import type { VolumePools } from './pools.ts'
import { receiveCopy, sendCopy } from './volume-copy.ts'

export type DiskMovesNeeds = {
  readonly pools: Pick<VolumePools, 'withID'>
  /** Throws VolumeError while a pod has the volume. */
  readonly whileUnused: <T>(order: NodeVolumeOrder, act: () => Promise<T>) => Promise<T>
  readonly room?: (path: string) => Promise<Room | undefined>
  /** What was written there is on the disk. */
  readonly flush?: (folder: string) => Promise<void>
  /** A copy waits so long for its order. */
  readonly patienceMs?: number
}

/** By volume: of which move, and why. */
type Refusals = Map<string, { readonly id: string; readonly reason: string }>

type Running = { readonly stop: AbortController; readonly done: Promise<unknown> }

/** Times of files are those of the last tick of the kernel's clock. */
const tickMs = 2_000
/** The free space is read so often while a copy comes. */
const roomBytes = 64 * 2 ** 20

export function diskMoves({
  pools,
  whileUnused,
  room = filesystemUsage(),
  flush = syncFilesystem,
  patienceMs = 5_000,
}: DiskMovesNeeds): VolumeMoves & VolumeCopies {
  const active = new Map<string, NodeVolumeOrder>()
  /** Contents that were read, and why a copy cannot be received, by volume. */
  const contents = new Map<string, Map<string, string>>()
  const refusals: Refusals = new Map()
  let notify: () => void = () => undefined
  const copies = copiesUnderWay(active, patienceMs, () => notify())

  /** Ends what the order of before began, as far as the one of now is another. */
  const leave = async (before: NodeVolumeOrder, now: NodeVolumeOrder | undefined): Promise<void> => {
    const { uid } = before
    const isSame = now?.move?.id === before.move?.id && now?.move?.round === before.move?.round
    if (!isSame || now?.kind !== before.kind) await copies.stop(uid)
    if (now === undefined) {
      for (const map of [contents, refusals]) map.delete(uid)
      await (await pools.withID(before.pool).catch(() => undefined))?.moves.removeSnapshots(uid)
    }
    active.delete(uid)
  }

  return {
    onChange(listener) {
      notify = listener
    },
    async follow(orders) {
      const wanted = new Map(orders.map((order) => [order.uid, order]))
      for (const before of active.values()) await leave(before, wanted.get(before.uid))
      for (const [uid, order] of wanted) active.set(uid, order)
      copies.ordersChanged()
      const reports: MoveReport[] = []
      for (const order of wanted.values()) {
        const [uid, id] = [order.uid, order.move?.id ?? '']
        const found = await followOne({ pools, whileUnused, refusals }, order, id).catch((error: unknown) => {
          if (!(error instanceof VolumeError)) throw error
          return { waits: messageOf(error) }
        })
        reports.push({ uid, id, ...found })
      }
      return reports
    },
    send: (wanted, send, signal) =>
      copies.run(wanted, ['send', 'hold'], signal, async (order, stop) => {
        const { uid, round } = { ...order, ...wanted }
        const pool = await pools.withID(order.pool)
        const { moves } = pool
        const folder = await folderOfVolume(pool, order)
        const isHeld = order.kind === 'hold'
        if (isHeld && (await moves.held(uid))?.id !== wanted.move) throw new VolumeError('the volume is not held')
        const beforeMs = Date.now() - tickMs
        await flush(folder)
        const known = { hashes: knownOf(contents, uid), beforeMs }
        const result = await copyResult(folder, round, known, stop).catch(unlessLive(isHeld, stop))
        // The second copy has what has changed since the first. After one that differed all is copied again.
        const since = round === 2 ? await ifThere(await moves.snapshot(uid, 1)) : undefined
        const snapshot = await moves.snapshot(uid, round)
        await sendCopy({ folder, since, snapshot, isLive: !isHeld }, send, stop)
        if (isHeld && result !== undefined) await moves.saveSent(uid, wanted.move, result)
      }),
    receive: (wanted, next, signal) =>
      copies.run(wanted, ['receive'], signal, (order, stop) =>
        receiveInto({ pools, room, flush, refusals, hashes: knownOf(contents, wanted.uid) }, order, {
          wanted,
          next,
          signal: stop,
        }),
      ),
  }
}

type CopyWork = (order: NodeVolumeOrder, signal: AbortSignal) => Promise<void>

/** Copies that are sent or received now: one of each volume, which ends with its order. `active`: the orders, by volume. */
function copiesUnderWay(active: ReadonlyMap<string, NodeVolumeOrder>, patienceMs: number, ended: () => void) {
  const running = new Map<string, Running>()
  const arrivals = changes()
  return {
    ordersChanged: arrivals.changed,
    async stop(uid: string): Promise<void> {
      const copy = running.get(uid)
      copy?.stop.abort()
      await copy?.done.catch(() => undefined)
    },
    async run(wanted: WantedCopy, kinds: readonly string[], outer: AbortSignal, work: CopyWork): Promise<void> {
      const { uid, move, round } = wanted
      const isFor = (order: NodeVolumeOrder | undefined) =>
        order !== undefined && kinds.includes(order.kind) && order.move?.id === move && order.move.round === round
      // It comes in a message of its own, perhaps after the session.
      await arrivals.waitFor(() => isFor(active.get(uid)), patienceMs)
      const order = active.get(uid)
      if (order === undefined || !isFor(order))
        throw new VolumeError(`no order asks for the copy ${round} of the move ${move}`)
      if (running.has(uid)) throw new VolumeError('the volume is being copied already')
      const stop = new AbortController()
      const done = work(order, AbortSignal.any([outer, stop.signal]))
      running.set(uid, { stop, done })
      try {
        await done
      } finally {
        running.delete(uid)
        ended()
      }
    },
  }
}

/** What waits for a condition is asked again after each change. */
function changes() {
  const waiting = new Set<() => void>()
  return {
    changed() {
      for (const ask of [...waiting]) ask()
    },
    /** Resolves when it is true, or the time has passed. */
    async waitFor(isTrue: () => boolean, ms: number): Promise<void> {
      if (isTrue()) return
      let ask = () => {}
      const became = new Promise<void>((resolve) => {
        ask = () => {
          if (isTrue()) resolve()
        }
      })
      waiting.add(ask)
      await withinOr(ms, undefined, became)
      waiting.delete(ask)
    },
  }
}

type Following = Pick<DiskMovesNeeds, 'pools' | 'whileUnused'> & { readonly refusals: Refusals }

/** Does again what was done before. */
async function followOne(
  { pools, whileUnused, refusals }: Following,
  order: NodeVolumeOrder,
  id: string,
): Promise<Omit<MoveReport, 'uid' | 'id'>> {
  const { uid, kind } = order
  const pool = await pools.withID(order.pool)
  const { moves } = pool
  switch (kind) {
    case 'hold': {
      const before = await moves.held(uid)
      const held = before?.id === id ? before : await whileUnused(order, () => moves.hold(uid, id))
      return { held: true, ...(held.sent && { sent: held.sent }) }
    }
    case 'release':
      await moves.release(uid)
      return { released: true }
    case 'receive': {
      const [received, refused] = [await moves.received(uid, id), refusals.get(uid)]
      return { ...(received && { received }), ...(refused?.id === id && { refusal: refused.reason }) }
    }
    case 'keep':
      await pool.use()
      await moves.keep(order, id)
      return { kept: true }
    case 'remove':
      await moves.remove(uid)
      return { removed: true }
    default:
      return {}
  }
}

type Receiving = Pick<DiskMovesNeeds, 'pools'> &
  Required<Pick<DiskMovesNeeds, 'room' | 'flush'>> & {
    readonly refusals: Refusals
    readonly hashes: Map<string, string>
  }
type Incoming = {
  readonly wanted: WantedCopy
  readonly next: () => Promise<Buffer | undefined>
  readonly signal: AbortSignal
}

/** Notes why it cannot be received if there is not enough space. */
async function receiveInto(
  { pools, room, flush, refusals, hashes }: Receiving,
  order: NodeVolumeOrder,
  { wanted, next, signal }: Incoming,
): Promise<void> {
  const { uid, move: id, round } = wanted
  const pool = await pools.withID(order.pool)
  const { moves } = pool
  const refuse = (reason: string) => {
    refusals.set(uid, { id, reason })
    throw new VolumeError(reason)
  }
  const checkRoom = async (bytes: number) => {
    const problem = await roomProblem({ ...pool.source, id: order.pool }, room, bytes)
    if (problem !== undefined) refuse(problem)
  }
  await checkRoom(round === 1 ? (order.move?.bytes ?? 0) : 0)
  await pool.use()
  const data = await moves.incoming(uid, id)
  await moves.saveReceived(uid, id, undefined)
  let unchecked = 0
  const counted = async () => {
    const piece = await next()
    unchecked += piece?.length ?? 0
    if (unchecked >= roomBytes) {
      unchecked = 0
      await checkRoom(0)
    }
    return piece
  }
  await receiveCopy(data, counted, signal).catch((error: unknown) => {
    if (isOutOfSpace(error)) refuse(noRoom(order.pool))
    throw error
  })
  await flush(data)
  // Nothing else writes there: each change is one of the times.
  const known = { hashes, beforeMs: Number.POSITIVE_INFINITY }
  const result: CopyResult = await copyResult(data, round, known, signal)
  await moves.saveReceived(uid, id, result)
}

function knownOf(contents: Map<string, Map<string, string>>, uid: string): Map<string, string> {
  const hashes = contents.get(uid) ?? new Map<string, string>()
  contents.set(uid, hashes)
  return hashes
}

async function ifThere(path: string): Promise<string | undefined> {
  return (await lstat(path).catch(() => undefined)) === undefined ? undefined : path
}

/** While pods write, files come and go: only what was read is kept then. */
function unlessLive(isHeld: boolean, signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (isHeld || signal.aborted || error instanceof VolumeError) throw error
    return undefined
  }
}
