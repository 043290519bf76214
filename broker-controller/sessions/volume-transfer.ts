/** A copy of a volume from one node to another: both dial the controller, which passes on what the one sends, as fast as the other takes it. */
import { decode } from '../../api/decode.ts'
import {
  type SessionRequest,
  SessionStatusSchema,
  sessionChannels,
  type VolumeCopyRequest,
} from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import type { Clock } from '../../daemon/clock.ts'
import { within } from '../../daemon/deadline.ts'
import { type SessionFrames, sessionFrames } from '../../daemon/sessions/session-frames.ts'
import type { SessionBoard } from './session-board.ts'
import { transferRate } from './transfer-rate.ts'

export type VolumeTransfer = Omit<VolumeCopyRequest, 'direction'> & {
  /** The nodes. */
  readonly from: string
  readonly to: string
  readonly bytesPerSecond: number
  /** Bytes that were passed on until now. */
  readonly progress: (bytes: number) => void
}

type TransferNeeds = { readonly sessions: Pick<SessionBoard, 'open'>; readonly clock: Clock }

const answerMs = 15_000

/** Resolves when the copy is on the disk of the other node. Rejects with the reason of the node that failed. */
export async function transferVolume(
  { from, to, bytesPerSecond, progress, ...copy }: VolumeTransfer,
  { sessions, clock }: TransferNeeds,
  signal: AbortSignal,
): Promise<void> {
  const { input, output, end, status } = sessionChannels
  const open = async (node: string, direction: VolumeCopyRequest['direction']): Promise<SessionFrames> => {
    const frames = sessionFrames(await sessions.open(node, { user: 'system:volume-mover', signal }))
    const request: SessionRequest = { volume: { ...copy, direction } }
    try {
      await frames.sendText(sessionChannels.request, JSON.stringify(request))
      const first = await within(answerMs, `node "${node}" did not answer`, frames.next(), clock)
      const answer = first?.channel === status ? statusIn(first.payload) : undefined
      if (answer?.state !== 'started') throw failure(node, answer?.message)
      return frames
    } catch (error) {
      frames.destroy()
      throw error
    }
  }
  // The target first: it may have no space.
  const target = await open(to, 'receive')
  let source: SessionFrames | undefined
  try {
    const ended = endOf(target, to)
    ended.catch(() => undefined)
    source = await open(from, 'send')
    const wait = transferRate(bytesPerSecond, clock, signal)
    let passed = 0
    for (;;) {
      const frame = await Promise.race([source.next(), ended])
      if (frame === undefined) throw failure(from, undefined)
      if (frame === 'ended') throw failure(to, 'it ended before the copy was complete')
      if (frame.channel === status) throw failure(from, statusIn(frame.payload)?.message)
      if (frame.channel === end && frame.payload[0] === output) break
      if (frame.channel !== output) continue
      await Promise.race([target.send(input, frame.payload), ended])
      passed += frame.payload.length
      progress(passed)
      await wait(frame.payload.length)
    }
    // A node that has failed does not read: its reason comes in `ended`.
    await Promise.race([target.send(end, Buffer.of(input)), ended])
    await ended
  } finally {
    source?.destroy()
    target.destroy()
  }
}

/** Rejects unless the node has done its part. */
async function endOf(frames: SessionFrames, node: string): Promise<'ended'> {
  for (;;) {
    const frame = await frames.next()
    if (frame === undefined) throw failure(node, undefined)
    if (frame.channel !== sessionChannels.status) continue
    const answer = statusIn(frame.payload)
    if (answer?.state === 'ended' && answer.reason === undefined) return 'ended'
    throw failure(node, answer?.message)
  }
}

function statusIn(payload: Buffer) {
  const decoded = decode(SessionStatusSchema, parseJson(payload.toString()))
  return decoded.ok ? decoded.value : undefined
}

function failure(node: string, message: string | undefined): Error {
  return new Error(`node "${node}": ${message ?? 'the stream was cut'}`)
}
