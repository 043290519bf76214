/**
 * An image of a card that the dashboard offers: compressed, without the terms of the join, which are put in when it is downloaded. The
 * file has a head in JSON and two streams of .xz, of what is before the terms in the image, and of what is behind them. Pure.
 */
import { decode } from '../../../api/decode.ts'
import { integer, object, oneOf, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import type { InitFormat } from '../card-form.ts'
import { storedXz } from './stored-xz.ts'

export type OfferedCard = {
  /** First line of the image's issue.txt. */
  readonly system: string
  readonly initFormat: InitFormat
  /** Bytes of the image. */
  readonly size: number
  readonly madeMs: number
  /** Bytes of the two streams. */
  readonly before: number
  readonly behind: number
}

const format = 'bramble-card-1'
const OfferedCardSchema = object({
  format: oneOf(format),
  system: text,
  initFormat: oneOf('systemd', 'cloudinit-rpi', 'none'),
  size: integer,
  madeMs: integer,
  before: integer,
  behind: integer,
})

export const cardHeadBytes = 4096

/** Room for the terms of the join in the image: lines with the longest names have less. */
export const joinBytes = 2048

/** The name of its file ends so. */
export const offeredEnd = '.card'

export function encodeHead(card: OfferedCard): Buffer {
  const head = Buffer.alloc(cardHeadBytes, '\n')
  const written = Buffer.from(JSON.stringify({ format, ...card }))
  if (written.length > cardHeadBytes) throw new RangeError('The head of an offered card is too long')
  written.copy(head)
  return head
}

/** Undefined if it is not the head of such a file of this size. */
export function decodeHead(head: Buffer, fileSize: number): OfferedCard | undefined {
  const decoded = decode(OfferedCardSchema, parseJson(head.toString('utf8')))
  if (!decoded.ok) return undefined
  const { format: _, ...card } = decoded.value
  if (card.size < 1 || card.before < 1 || card.behind < 1) return undefined
  return cardHeadBytes + card.before + card.behind === fileSize ? card : undefined
}

/** The terms of the join in all of their room: YAML ends with empty lines. Throws if they are longer. */
export function joinRoom(terms: string): Buffer {
  const bytes = Buffer.from(terms)
  if (bytes.length > joinBytes)
    throw new RangeError(`The terms of the join have ${bytes.length} bytes, the room ${joinBytes}`)
  return Buffer.concat([bytes, Buffer.alloc(joinBytes - bytes.length, '\n')])
}

/** A piece of a download: bytes, or a part of the file. */
export type CardPiece = { readonly bytes: Buffer } | { readonly start: number; readonly length: number }

/** What is downloaded from this byte on, with these terms. */
export function cardPieces({ before, behind }: OfferedCard, terms: Buffer, from: number): readonly CardPiece[] {
  const whole: readonly CardPiece[] = [
    { start: cardHeadBytes, length: before },
    { bytes: storedXz(terms) },
    { start: cardHeadBytes + before, length: behind },
  ]
  const pieces: CardPiece[] = []
  let skipped = from
  for (const piece of whole) {
    const length = 'bytes' in piece ? piece.bytes.length : piece.length
    const left = Math.min(skipped, length)
    skipped -= left
    if (left === length) continue
    if ('bytes' in piece) pieces.push({ bytes: piece.bytes.subarray(left) })
    else pieces.push({ start: piece.start + left, length: length - left })
  }
  return pieces
}

const storedJoinBytes = storedXz(Buffer.alloc(joinBytes)).length

/** Bytes of a whole download. */
export function downloadBytes({ before, behind }: OfferedCard): number {
  return before + storedJoinBytes + behind
}
