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
    if (decoded.ok && isUsable(decoded.value)) orders.push(decoded.value)
    else problems.push(`the order ${describe(item)}`)
  }
  return { ok: true, value: { message: { ...envelope.value, orders }, problems }, unknownFields: [] }
}

function describe(item: unknown): string {
  const [kind, volume] = ['kind', 'volume'].map((field) => (isObject(item) ? String(item[field]).slice(0, 64) : '?'))
  return JSON.stringify(`${kind} ${volume}`)
}

const moveKinds: readonly string[] = ['send', 'hold', 'release', 'receive', 'keep', 'remove']
const shareKinds: readonly string[] = ['share-trash', 'share-delete']

function isUsable(order: NodeVolumeOrder): boolean {
  const { uid, volume, claim = '', claimUID = '' } = order
  return /^[\w-]{1,128}$/.test(uid) && isPlace(order) && [volume, claim, claimUID].every((text) => text.length <= 512)
}

function isPlace({ kind, pool, folder, share, move }: NodeVolumeOrder): boolean {
  if (shareKinds.includes(kind)) return share !== undefined && pool === '' && isPathOnShare(folder)
  if (share !== undefined || !isPool({ id: pool, path: '/' }) || !isFolderName(folder)) return false
  return kind === 'trash' || (moveKinds.includes(kind) && move !== undefined && isMoveID(move.id) && move.round > 0)
}

/** Below the share; the provisioner makes no name that begins with a dot. The share itself is checked before it is mounted. */
function isPathOnShare(path: string): boolean {
  return path.length <= 512 && path.split('/').every((name) => isFolderName(name))
}

/** One level below the pool, and not the pool's own: that has a dot. */
function isFolderName(name: string): boolean {
  return name !== '' && !name.startsWith('.') && !/[/\0]/.test(name) && Buffer.byteLength(name) <= 255
}
