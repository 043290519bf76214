/** The moves of volumes between pools as orders, reports and sessions see them. `agent/adapters/disk/volumes/disk-moves.ts` implements it on files. */
import type { MoveReport, NodeVolumeOrder } from '../../../api/storage/volume-messages.ts'

export interface VolumeMoves {
  /** Those of the present message that are obeyed: copies are sent and received for these alone. Reports of all. */
  follow(orders: readonly NodeVolumeOrder[]): Promise<readonly MoveReport[]>
  /** A copy is there, or cannot be: there is something to report. One listener. */
  onChange(listener: () => void): void
}

export type WantedCopy = { readonly uid: string; readonly move: string; readonly round: number }

/** The copies that sessions with the controller carry. */
export interface VolumeCopies {
  /** Throws VolumeError if no order asks for it. The bytes are given to `send` in turn; resolves when all are sent. */
  send(wanted: WantedCopy, send: (piece: Buffer) => Promise<void>, signal: AbortSignal): Promise<void>
  /** As `send`. `next`: the next bytes; undefined: all are here. It throws if the sender ended early. */
  receive(wanted: WantedCopy, next: () => Promise<Buffer | undefined>, signal: AbortSignal): Promise<void>
}
