/** Bytes → the frames of a session (`api/sessions.ts`). */
import { longestFrame, sessionChannels } from '../../api/sessions.ts'

export type SessionFrame = { readonly channel: number; readonly payload: Buffer }

export interface FrameDecoder {
  /** Throws where the bytes are no frames. */
  push(piece: Buffer): void
  /** Nothing of a frame has come whose rest is missing. */
  isBetweenFrames(): boolean
}

const { ping, request } = sessionChannels
const headBytes = 4
const nothing = Buffer.alloc(0)

/**
 * `emit` gets each frame that is no ping. A frame is collected although data could be handed on in parts: TLS gives at most 16 KiB at a time,
 * and each part would be a message to the client, which costs more than the copy.
 */
export function frameDecoder(emit: (frame: SessionFrame) => void): FrameDecoder {
  let head: Buffer = nothing
  let channel = 0
  /** Of the payload that is still to come; undefined: a head is next. */
  let left: number | undefined
  let parts: Buffer[] = []

  const begin = (bytes: Buffer, at: number) => {
    channel = bytes.readUInt8(at)
    const size = bytes.readUIntBE(at + 1, 3)
    const most = channel === request ? longestFrame.request : longestFrame.data
    if (size > most) throw new Error(`A frame of ${size} bytes is longer than ${most} bytes`)
    if (size > 0) left = size
    else if (channel !== ping) emit({ channel, payload: nothing })
  }
  /** Returns how much of the piece it took. */
  const takeHead = (piece: Buffer, at: number): number => {
    if (head.length === 0 && piece.length - at >= headBytes) {
      begin(piece, at)
      return headBytes
    }
    const part = piece.subarray(at, at + headBytes - head.length)
    head = Buffer.concat([head, part])
    if (head.length === headBytes) {
      const whole = head
      head = nothing
      begin(whole, 0)
    }
    return part.length
  }
  const takePayload = (piece: Buffer, at: number, wanted: number): number => {
    const part = piece.subarray(at, at + wanted)
    left = part.length === wanted ? undefined : wanted - part.length
    if (channel === ping) return part.length
    parts.push(part)
    if (left === undefined) {
      const whole = parts
      parts = []
      emit({ channel, payload: whole.length === 1 ? part : Buffer.concat(whole) })
    }
    return part.length
  }

  return {
    push(piece) {
      for (let at = 0; at < piece.length; ) {
        at += left === undefined ? takeHead(piece, at) : takePayload(piece, at, left)
      }
    },
    isBetweenFrames: () => head.length === 0 && left === undefined,
  }
}
