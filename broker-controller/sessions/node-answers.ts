/** Sessions of the controller itself with a node, which is asked for a part of a backup: it sends something, or takes something. */
import { type BackupFacts, BackupFactsSchema, type BackupRequest } from '../../api/backups/backup-sessions.ts'
import { decode } from '../../api/decode.ts'
import { type SessionRequest, SessionStatusSchema, sessionChannels } from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import type { Clock } from '../../daemon/clock.ts'
import { within } from '../../daemon/deadline.ts'
import { type SessionFrames, sessionFrames } from '../../daemon/sessions/session-frames.ts'
import type { SessionBoard } from './session-board.ts'

export type SessionNeeds = { readonly sessions: Pick<SessionBoard, 'open'>; readonly clock: Clock }

/** `read`, `list` or `fetch`. */
export interface SendingNode {
  /** What the node sends, to its announced end. */
  pieces(): AsyncGenerator<Buffer>
  /** What it has reported until now. */
  facts(): BackupFacts
  close(): void
}

/** `store` or `restore`. */
export interface TakingNode {
  /** Rejects also if the node has ended: with its reason. */
  send(piece: Buffer): Promise<void>
  /** What was sent is whole. */
  sendEnd(): Promise<void>
  sendText(text: string): Promise<void>
  /** Resolves when the node has reported this. */
  reported(fact: keyof BackupFacts): Promise<BackupFacts>
  /** Resolves when the node has done all. Rejects with its reason. */
  readonly ended: Promise<void>
  /** It has done all, whether or not it was sent all. */
  readonly isDone: boolean
  close(): void
}

const answerMs = 15_000
const { input, output, end, status, request } = sessionChannels

export async function sendingNode(
  node: string,
  wanted: BackupRequest,
  needs: SessionNeeds,
  signal: AbortSignal,
): Promise<SendingNode> {
  const frames = await opened(node, wanted, needs, signal)
  let known: BackupFacts = {}
  const take = (channel: number, payload: Buffer) => {
    if (channel === request) known = { ...known, ...factsIn(payload) }
    if (channel === status) throw failure(node, statusIn(payload)?.message ?? 'it ended before all was sent')
  }
  return {
    facts: () => known,
    close: () => frames.destroy(),
    async *pieces() {
      for (;;) {
        const frame = await frames.next()
        const { channel, payload } = frame ?? cut(node)
        if (channel === output) yield payload
        else if (channel === end && payload[0] === output) return
        else take(channel, payload)
      }
    },
  }
}

export async function takingNode(
  node: string,
  wanted: BackupRequest,
  needs: SessionNeeds,
  signal: AbortSignal,
): Promise<TakingNode> {
  const frames = await opened(node, wanted, needs, signal)
  let known: BackupFacts = {}
  let isDone = false
  let wake: () => void = () => undefined
  const follow = async (): Promise<void> => {
    for (;;) {
      const frame = await frames.next()
      const { channel, payload } = frame ?? cut(node)
      if (channel === request) {
        known = { ...known, ...factsIn(payload) }
        wake()
      }
      if (channel !== status) continue
      const { state, reason, message } = statusIn(payload) ?? {}
      isDone = state === 'ended' && reason === undefined
      if (isDone) return
      throw failure(node, message)
    }
  }
  const ended = follow()
  const endedEarly = ended.then(() => Promise.reject(failure(node, 'it ended early')))
  for (const one of [ended, endedEarly]) one.catch(() => undefined)
  return {
    ended,
    get isDone() {
      return isDone
    },
    send: (piece) => Promise.race([frames.send(input, piece), endedEarly]),
    sendEnd: async () => void (await Promise.race([frames.send(end, Buffer.of(input)), ended])),
    sendText: (text) => frames.sendText(request, text),
    async reported(fact) {
      while (known[fact] === undefined) {
        const reported = new Promise<void>((resolve) => {
          wake = resolve
        })
        await Promise.race([reported, endedEarly])
      }
      return known
    },
    close: () => frames.destroy(),
  }
}

/** The connection ended before its announced end. */
function cut(node: string): never {
  throw failure(node, undefined)
}

/** Rejects with the reason of the node, and where it is away. */
async function opened(
  node: string,
  backup: BackupRequest,
  { sessions, clock }: SessionNeeds,
  signal: AbortSignal,
): Promise<SessionFrames> {
  const frames = sessionFrames(await sessions.open(node, { user: 'system:volume-backups', signal }))
  try {
    const wanted: SessionRequest = { backup }
    await frames.sendText(request, JSON.stringify(wanted))
    const first = await within(answerMs, `node "${node}" did not answer`, frames.next(), clock)
    const answer = first?.channel === status ? statusIn(first.payload) : undefined
    if (answer?.state !== 'started') throw failure(node, answer?.message)
    return frames
  } catch (error) {
    frames.destroy()
    throw error
  }
}

function factsIn(payload: Buffer): BackupFacts {
  const decoded = decode(BackupFactsSchema, parseJson(payload.toString()))
  return decoded.ok ? decoded.value : {}
}

function statusIn(payload: Buffer) {
  const decoded = decode(SessionStatusSchema, parseJson(payload.toString()))
  return decoded.ok ? decoded.value : undefined
}

function failure(node: string, message: string | undefined): Error {
  return new Error(`node "${node}": ${message ?? 'the stream was cut'}`)
}
