/** kubectl logs: the log of one container, no faster than its reader takes it. */
import { type LogRequest, type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import type { LogOptions } from './engine-streams.ts'
import { logSource } from './log-source.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { PodSession } from './session-types.ts'

/** Throws a SessionRefusal with a sentence of the kubelet where there is no such log. */
export async function sendLog(
  request: LogRequest,
  { engine, pod, containersOf, clock, frames, signal, started }: PodSession,
): Promise<Omit<SessionStatus, 'state'>> {
  const source = logSource(pod, request.container, request.previous === true)
  if ('problem' in source) throw new SessionRefusal('BadRequest', source.problem)
  const own = await containersOf(pod.metadata.uid ?? '')
  const isOwn = own.some(({ id, identity }) => id === source.id && identity.containerName === request.container)
  // The kubelet has removed it, but the status still names it.
  if (!isOwn) {
    const where = `container "${request.container}" in pod "${pod.metadata.name}"`
    throw new SessionRefusal('BadRequest', `the log of ${where} was removed with the container`)
  }
  let left = request.limitBytes ?? Number.POSITIVE_INFINITY
  const pieces = await engine.log(source.id, logOptionsOf(request, clock.wallMs()), signal)
  await started()
  for await (const piece of pieces) {
    await frames.send(sessionChannels.output, piece.subarray(0, Math.min(left, piece.length)))
    left -= piece.length
    if (left <= 0) break
  }
  return {}
}

function logOptionsOf(request: LogRequest, nowMs: number): LogOptions {
  const { follow = false, timestamps = false, tailLines, sinceSeconds, sinceTime } = request
  const since = sinceTime === undefined ? secondsBefore(nowMs, sinceSeconds) : secondsOf(sinceTime)
  return { follow, timestamps, tailLines, since }
}

function secondsBefore(nowMs: number, seconds: number | undefined): string | undefined {
  return seconds === undefined ? undefined : Math.max(0, nowMs / 1000 - seconds).toFixed(3)
}

/** JavaScript's dates have milliseconds: the fraction is kept as it was written. */
function secondsOf(time: string): string {
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '0'
  const whole = Math.floor(Date.parse(time.replace(/\.\d+/, '')) / 1000)
  return `${Math.max(0, whole)}.${fraction}`
}
