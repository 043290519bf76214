/** The move of a volume to another pool, as it is written on its PersistentVolume, and the orders that follow from that. Pure. */
import { decode } from '../decode.ts'
import { type Described, integer, object, oneOf, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'
import type { PersistentVolume } from './persistent-volume.ts'
import type { NodeVolumeOrder } from './volume-messages.ts'

/** On a PersistentVolume, written by a person: the node to which its data is to be moved. Removed: the move is cancelled. */
export const moveToAnnotation = 'bramble.dev/move-to'
/** On a PersistentVolume, written by the controller: the state of its move. */
export const moveAnnotation = 'bramble.dev/move'
/** On a PersistentVolume, written by a person: bytes of its move, its backups and its restoration per second. */
export const moveRateAnnotation = 'bramble.dev/move-rate'
export const usualMoveRate = 32 * 2 ** 20

const VolumeMoveSchema = object({
  /** New for each move: part of the name of the new folder, so that no order for an old one is ever about a newer one. */
  id: text,
  phase: oneOf('copy', 'hold', 'delta', 'place', 'clean', 'rollback'),
  round: integer,
  /** `folder`: its name in the pool. */
  from: object({ pool: text, folder: text }),
  to: object({ pool: text, folder: text, node: text }),
  /** What was measured at the source. */
  bytes: optional(integer),
  /** Why it is rolled back. */
  why: optional(text),
})
export type VolumeMove = Described<typeof VolumeMoveSchema>

const longestMove = 2_048

/** undefined: it is not being moved. */
export function moveOf({ metadata: { annotations = {} } }: PersistentVolume): VolumeMove | undefined {
  const written = annotations[moveAnnotation]
  if (written === undefined || written.length > longestMove) return undefined
  const move = decode(VolumeMoveSchema, parseJson(written))
  return move.ok && isMoveID(move.value.id) ? move.value : undefined
}

/** Bytes of its move, or of its backup, per second. */
export function moveRateOf({ metadata: { annotations = {} } }: PersistentVolume): number {
  const rate = Number(annotations[moveRateAnnotation] ?? usualMoveRate)
  return Number.isSafeInteger(rate) && rate > 0 ? rate : usualMoveRate
}

/** It is part of names of files. */
export function isMoveID(id: string): boolean {
  return /^[0-9a-f]{8}$/.test(id)
}

/** The old copy in the trash has a name of its own: the volume may be moved back. */
export function oldCopyOf(uid: string, { id }: Pick<VolumeMove, 'id'>): string {
  return `${uid}-${id}`
}

const kinds = {
  copy: { from: 'send', to: 'receive' },
  hold: { from: 'hold', to: 'receive' },
  delta: { from: 'hold', to: 'receive' },
  place: { from: undefined, to: 'keep' },
  clean: { from: 'trash', to: undefined },
  rollback: { from: 'release', to: 'remove' },
} as const

/** Those for the pools at both ends. */
export function moveOrders(volume: PersistentVolume): readonly NodeVolumeOrder[] {
  const move = moveOf(volume)
  const { name = '', uid = '' } = volume.metadata
  if (move === undefined || uid === '') return []
  const { capacity = {}, claimRef, storageClassName } = volume.spec ?? {}
  const { id, round, bytes, from, to, phase } = move
  const claim = {
    ...(claimRef?.name && { claim: `${claimRef.namespace ?? ''}/${claimRef.name}` }),
    ...(claimRef?.uid && { claimUID: claimRef.uid }),
  }
  const facts = { move: { id, round, ...(bytes !== undefined && { bytes }) } }
  const kept = {
    ...(capacity['storage'] !== undefined && { capacity: String(capacity['storage']) }),
    ...(storageClassName && { storageClass: storageClassName }),
  }
  const kind = kinds[phase]
  const source = (): NodeVolumeOrder | undefined => {
    if (kind.from === undefined) return undefined
    const place = { pool: from.pool, folder: from.folder, ...claim }
    return kind.from === 'trash'
      ? { kind: 'trash', volume: `${name}-${id}`, uid: oldCopyOf(uid, move), ...place, ...kept }
      : { kind: kind.from, volume: name, uid, ...place, ...facts }
  }
  const target: NodeVolumeOrder | undefined = kind.to && {
    kind: kind.to,
    volume: name,
    uid,
    pool: to.pool,
    folder: to.folder,
    ...claim,
    ...facts,
  }
  return [source(), target].flatMap((order) => order ?? [])
}
