/** Bytes → the frames of a session (`api/sessions.ts`). */
import { longestFrame, sessionChannels } from '../../api/sessions.ts'

export type SessionFrame = {
  readonly channel: number
  readonly payload: Buffer
  /** The payload after the byte of its channel: a message of Kubernetes' own protocol (v5.channel.k8s.io). */
  readonly message: Buffer
}

export interface FrameDecoder {
  /** Throws where the bytes are not frames. */
  push(piece: Buffer): void
  /** Nothing of a frame has come whose rest is missing. */
  isBetweenFrames(): boolean
}

const { ping, request } = sessionChannels
const headBytes = 4
const nothing = Buffer.alloc(0)

/**
 * `emit` gets each frame that is not a ping. A frame is collected although data could be handed on in parts: TLS gives at most 16 KiB at a time,
 * and each part would be a message to the client, which costs more than the copy. It is copied once, to where it stands as a message.
 */
export function frameDecoder(emit: (frame: SessionFrame) => void): FrameDecoder {
  let head: Buffer = nothing
  /** Frame whose payload is being read; undefined: a head is next. */
  let message: Buffer | undefined
  /** Bytes of the message that are there. */
  let filled = 0
  /** Bytes left of a ping's payload, which is dropped. */
  let dropped = 0

  const emitMessage = (whole: Buffer) => {
    emit({ channel: whole.readUInt8(0), payload: whole.subarray(1), message: whole })
  }
  const begin = (bytes: Buffer, at: number) => {
    const channel = bytes.readUInt8(at)
    const size = bytes.readUIntBE(at + 1, 3)
    const most = channel === request ? longestFrame.request : longestFrame.data
    if (size > most) throw new Error(`A frame of ${size} bytes is longer than ${most} bytes`)
    if (channel === ping) {
      dropped = size
      return
    }
    const begun = Buffer.allocUnsafe(1 + size)
    begun.writeUInt8(channel)
    if (size === 0) return emitMessage(begun)
    message = begun
    filled = 1
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
  const takePayload = (into: Buffer, piece: Buffer, at: number): number => {
    const taken = piece.copy(into, filled, at)
    filled += taken
    if (filled === into.length) {
      message = undefined
      emitMessage(into)
    }
    return taken
  }
  const drop = (length: number): number => {
    const taken = Math.min(dropped, length)
    dropped -= taken
    return taken
  }

  return {
    push(piece) {
      for (let at = 0; at < piece.length; ) {
        if (dropped > 0) at += drop(piece.length - at)
        else at += message === undefined ? takeHead(piece, at) : takePayload(message, piece, at)
      }
    },
    isBetweenFrames: () => head.length === 0 && message === undefined && dropped === 0,
  }
}
