/** A command in a container of a pod, for the controller itself. */
import { decode } from '../../api/decode.ts'
import { type SessionRequest, type SessionStatus, SessionStatusSchema, sessionChannels } from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import { withDeadline } from '../../daemon/deadline.ts'
import { type SessionFrames, sessionFrames } from '../../daemon/sessions/session-frames.ts'
import type { SessionNeeds } from './node-answers.ts'

export type PodCommand = {
  readonly node: string
  readonly pod: Required<Pick<SessionRequest, 'namespace' | 'pod' | 'uid'>>
  readonly container: string
  readonly command: readonly string[]
  readonly timeoutMs: number
}

const mostText = 1_000

/** Rejects unless it ends with 0 in time, with the end of what it wrote. */
export async function runInPod(
  { node, pod, container, command, timeoutMs }: PodCommand,
  { sessions }: SessionNeeds,
  signal: AbortSignal,
): Promise<void> {
  const what = `the command ${JSON.stringify(command.join(' '))} in the container ${container} of pod ${pod.pod}`
  const status = await withDeadline(
    timeoutMs,
    signal,
    async (own) => {
      const frames = sessionFrames(await sessions.open(node, { user: 'system:volume-backups', signal: own }))
      try {
        const exec = { container, command, stdin: false, stdout: true, stderr: true, tty: false }
        await frames.sendText(sessionChannels.request, JSON.stringify({ ...pod, exec }))
        return await endOf(frames, what)
      } finally {
        frames.destroy()
      }
    },
    `${what} did not end`,
  )
  const { exitCode = 0, reason, message, text } = status
  if (reason !== undefined) throw new Error(`${what} was not run: ${message ?? reason}`)
  if (exitCode !== 0) throw new Error(`${what} ended with ${exitCode}: ${text}`)
}

function statusIn(payload: Buffer): SessionStatus | undefined {
  const decoded = decode(SessionStatusSchema, parseJson(payload.toString()))
  return decoded.ok ? decoded.value : undefined
}

/** The last status, with the end of what the command wrote. */
async function endOf(frames: SessionFrames, what: string): Promise<SessionStatus & { readonly text: string }> {
  const { output, errorOutput, status } = sessionChannels
  let text = ''
  for (;;) {
    const frame = await frames.next()
    if (frame === undefined) throw new Error(`${what} was cut`)
    const { channel, payload } = frame
    if (channel === output || channel === errorOutput) text = (text + payload.toString()).slice(-mostText)
    const reported = channel === status ? statusIn(payload) : undefined
    if (reported !== undefined && reported.state !== 'started') return { ...reported, text: text.trim() }
  }
}
