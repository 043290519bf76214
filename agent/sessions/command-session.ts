/** kubectl exec and attach: the standard streams of a process in a container, both ways. */
import { decode } from '../../api/decode.ts'
import {
  type AttachRequest,
  type ExecRequest,
  type SessionStatus,
  sessionChannels,
  TerminalSizeSchema,
} from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import type { SessionFrames } from '../../daemon/sessions/session-frames.ts'
import type { EngineProcess } from './engine-streams.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { PodSession } from './session-types.ts'

type End = Omit<SessionStatus, 'state'>

/** Resolves with the exit code of the command. */
export async function runExec(request: ExecRequest, session: PodSession): Promise<End> {
  const id = await runningContainer(request.container, session)
  const running = await session.engine.exec(id, request, session.signal)
  try {
    await session.started()
    await relay(running, session)
    const exitCode = await running.exitCode()
    return exitCode === undefined ? {} : { exitCode }
  } finally {
    await running.stopped()
  }
}

/** Resolves when the container has ended. Its exit code is in the status of the pod. */
export async function attachTo(request: AttachRequest, session: PodSession): Promise<End> {
  const id = await runningContainer(request.container, session)
  const attached = await session.engine.attach(id, request, session.signal)
  await session.started()
  await relay(attached, session)
  return {}
}

/** Throws a SessionRefusal in the kubelet's words (GetExec in pkg/kubelet/kubelet_pods.go). */
async function runningContainer(name: string, { pod, containersOf }: PodSession): Promise<string> {
  const own = await containersOf(pod.metadata.uid ?? '')
  const found = own.find(
    ({ identity, state }) => identity.kind === 'container' && identity.containerName === name && state === 'running',
  )
  if (found === undefined) throw new SessionRefusal('NotFound', `container not found ("${name}")`)
  return found.id
}

/** Until the output ends. Input continues beside it; it ends with the session. */
async function relay(running: EngineProcess, { frames, signal }: PodSession): Promise<void> {
  const input = passInput(running, frames).catch(() => {
    // The process has closed its input, or the stream is gone: its output shows which.
  })
  for await (const { stream, bytes } of running.output) {
    await frames.send(stream === 'stdout' ? sessionChannels.output : sessionChannels.errorOutput, bytes)
  }
  if (signal.aborted) await input
}

async function passInput(running: EngineProcess, frames: SessionFrames): Promise<void> {
  for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
    const { channel, payload } = frame
    if (channel === sessionChannels.input) await running.write(payload)
    else if (channel === sessionChannels.end && payload[0] === sessionChannels.input) running.endInput()
    else if (channel === sessionChannels.resize) {
      const size = decode(TerminalSizeSchema, parseJson(payload.toString()))
      if (size.ok) await running.resize(size.value.Width, size.value.Height)
    }
  }
}
