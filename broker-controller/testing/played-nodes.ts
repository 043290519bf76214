/** Nodes that answer sessions of the controller: each plays its part once for each session. */
import { Duplex, PassThrough } from 'node:stream'
import { type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import { type SessionFrames, sessionFrames } from '../../daemon/sessions/session-frames.ts'

export type NodePart = (frames: SessionFrames, wanted: Readonly<Record<string, unknown>>) => Promise<unknown>

export function playedNodes(parts: { readonly [node: string]: NodePart }) {
  const requests: { readonly node: string; readonly wanted: Readonly<Record<string, unknown>> }[] = []
  return {
    requests,
    sessions: {
      async open(node: string): Promise<Duplex> {
        const part = parts[node]
        if (part === undefined) throw new Error(`node "${node}" is not connected`)
        const [there, back] = [new PassThrough(), new PassThrough()]
        const own = sessionFrames(Duplex.from({ readable: there, writable: back }))
        const play = async () => {
          const first = await own.next()
          const wanted = parseJson(first?.payload.toString() ?? '') as Readonly<Record<string, unknown>>
          requests.push({ node, wanted })
          await part(own, wanted)
        }
        play().catch(() => undefined)
        return Duplex.from({ readable: back, writable: there })
      },
    },
  }
}

export function reportStatus(frames: SessionFrames, answer: SessionStatus): Promise<void> {
  return frames.sendText(sessionChannels.status, JSON.stringify(answer))
}

export function reportFacts(frames: SessionFrames, facts: object): Promise<void> {
  return frames.sendText(sessionChannels.request, JSON.stringify(facts))
}

/** Sends all of this, and that it is all. */
export function sendingAll(pieces: readonly (Uint8Array | string)[], facts: object = {}): NodePart {
  return async (frames) => {
    await reportStatus(frames, { state: 'started' })
    for (const piece of pieces) await frames.send(sessionChannels.output, Buffer.from(piece))
    await reportFacts(frames, facts)
    await frames.send(sessionChannels.end, Buffer.of(sessionChannels.output))
    await reportStatus(frames, { state: 'ended' })
  }
}
