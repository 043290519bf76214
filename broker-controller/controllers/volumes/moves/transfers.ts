/** The copies that go from node to node now: one for each volume, and again after a while when it fails. */
import { moveRateOf, type VolumeMove } from '../../../../api/storage/volume-move.ts'
import type { Clock } from '../../../../daemon/clock.ts'
import type { Log } from '../../../../daemon/log.ts'
import type { SessionBoard } from '../../../sessions/session-board.ts'
import { transferVolume } from '../../../sessions/volume-transfer.ts'
import type { StorageBoard } from '../../../usage/storage-board.ts'
import type { StoredVolume } from '../volume-index.ts'
import type { MoveNode } from './move-start.ts'

export type TransferNeeds = {
  readonly sessions: Pick<SessionBoard, 'open'>
  readonly storage: Pick<StorageBoard, 'copiedBytes'>
  readonly clock: Clock
  readonly log: Log
}

export interface MoveTransfers {
  /** Begins this copy unless it runs, was done, or failed just now. */
  ensure(
    volume: StoredVolume,
    move: VolumeMove,
    ends: { readonly source: MoveNode | undefined; readonly target: MoveNode | undefined },
  ): void
  stop(volume: string): Promise<void>
  stopAll(): Promise<void>
}

type Transfer = {
  readonly copy: string
  readonly stop: AbortController
  readonly done: Promise<void>
  againMs?: number
}

/** A node reports what it has within this time, and a failed copy is tried again. */
const againMs = 10_000

/** `visit`: the volume is looked at again. */
export function moveTransfers(
  { sessions, storage, clock, log }: TransferNeeds,
  visit: (volume: string, waitMs: number) => void,
): MoveTransfers {
  const transfers = new Map<string, Transfer>()
  const stop = async (name: string) => {
    const transfer = transfers.get(name)
    transfer?.stop.abort()
    await transfer?.done
    transfers.delete(name)
  }
  return {
    ensure(volume, { id, round, phase }, { source, target }) {
      const { name, uid } = volume.metadata
      const [from, to] = [source, target].map((one) => one?.node.metadata.name)
      const copy = `${id} ${phase} ${round}`
      const before = transfers.get(name)
      const isOver = before?.againMs !== undefined && clock.monotonicMs() >= before.againMs
      if (before !== undefined && before.copy === copy && !isOver) return
      if (from === undefined || to === undefined) return
      before?.stop.abort()
      const controller = new AbortController()
      const transfer: Transfer = {
        copy,
        stop: controller,
        done: transferVolume(
          {
            ...{ uid, move: id, round, from, to, bytesPerSecond: moveRateOf(volume) },
            progress: (bytes) => void storage.copiedBytes.set(uid, bytes),
          },
          { sessions, clock },
          controller.signal,
        )
          .catch((error: unknown) => {
            if (!controller.signal.aborted) log.warn('A copy of a volume failed', { volume: name, from, to, error })
          })
          .finally(() => {
            transfer.againMs = clock.monotonicMs() + againMs
            if (!controller.signal.aborted) visit(name, againMs)
          }),
      }
      transfers.set(name, transfer)
    },
    stop,
    async stopAll() {
      await Promise.all([...transfers.keys()].map(stop))
    },
  }
}
