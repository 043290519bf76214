/** The orders of a message as this node uses them: their texts become names of files, so each is checked. Pure. */
import { type Decoded, decode } from '../../../api/decode.ts'
import { decodedLater, integer, list, object, text } from '../../../api/schema.ts'
import { isPool } from '../../../api/storage/pools.ts'
import {
  mostOrders,
  type NodeVolumeOrder,
  VolumeOrderSchema,
  type VolumesMessage,
} from '../../../api/storage/volume-messages.ts'
import { isMoveID } from '../../../api/storage/volume-move.ts'
import { isObject } from '../../../api/text/json.ts'

type ReceivedOrders = { readonly message: VolumesMessage; readonly problems: readonly string[] }

const EnvelopeSchema = object({ epoch: text, version: integer, store: text, orders: list(decodedLater) })

/** Orders that this version does not have, or cannot use, are left out. */
export function decodeOrders(input: unknown): Decoded<ReceivedOrders> {
  const envelope = decode(EnvelopeSchema, input)
  if (!envelope.ok) return envelope
  const orders: NodeVolumeOrder[] = []
  const problems: string[] = []
  for (const item of envelope.value.orders.slice(0, mostOrders)) {
    const decoded = decode(VolumeOrderSchema, item)
    if (decoded.ok && isKnown(decoded.value) && isUsable(decoded.value)) orders.push(decoded.value)
    else problems.push(`the order ${describe(item)}`)
  }
  return { ok: true, value: { message: { ...envelope.value, orders }, problems }, unknownFields: [] }
}

function describe(item: unknown): string {
  const [kind, volume] = ['kind', 'volume'].map((field) => (isObject(item) ? String(item[field]).slice(0, 64) : '?'))
  return JSON.stringify(`${kind} ${volume}`)
}

const moveKinds: readonly string[] = ['send', 'hold', 'release', 'receive', 'keep', 'remove']

function isKnown({ kind, move }: NodeVolumeOrder): boolean {
  if (kind === 'trash') return true
  return moveKinds.includes(kind) && move !== undefined && isMoveID(move.id) && move.round > 0
}

function isUsable({ uid, pool, folder, volume, claim = '', claimUID = '' }: NodeVolumeOrder): boolean {
  return (
    /^[\w-]{1,128}$/.test(uid) &&
    isPool({ id: pool, path: '/' }) &&
    isFolderName(folder) &&
    [volume, claim, claimUID].every((text) => text.length <= 512)
  )
}

/** One level below the pool, and not the pool's own: that has a dot. */
function isFolderName(name: string): boolean {
  return name !== '' && !name.startsWith('.') && !/[/\0]/.test(name) && Buffer.byteLength(name) <= 255
}
