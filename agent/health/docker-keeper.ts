/** Loop: restarts a Docker that does not answer, through systemd, and records an Event. */
import { aborted } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { DockerSilence } from './docker.ts'
import { isRestartDue, noRestarts, restarted, seenWell } from './docker-restart.ts'
import type { UnitController } from './unit-controller.ts'

export type DockerKeeperNeeds = {
  readonly silence: () => DockerSilence | undefined
  readonly services: UnitController
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (event: NodeEvent) => void
}

export interface DockerKeeper {
  run(signal: AbortSignal): Promise<void>
}

const unit = 'docker.service'
const periodMs = 5_000
const seconds = (ms: number) => Math.round(ms / 1000)

export function dockerKeeper({ silence, services, clock, log, recordEvent }: DockerKeeperNeeds): DockerKeeper {
  let restarts = noRestarts
  let logged = ''

  /** Docker is not restarted, for this reason; logged when the reason changes. */
  const leave = (why: string) => {
    if (why !== logged) log.warn('Docker is not restarted by the agent', { why })
    logged = why
  }

  const pass = async () => {
    const nowMs = clock.monotonicMs()
    const now = silence()
    if (now === undefined) {
      restarts = seenWell(restarts, nowMs)
      logged = ''
      return
    }
    if (!isRestartDue(restarts, now, nowMs)) return
    const { load, active } = await services.state(unit)
    if (load !== 'loaded') return leave(`${unit} is ${load}`)
    if (active.endsWith('ing')) return leave(`${unit} is ${active}`)
    restarts = restarted(restarts, nowMs)
    const after = `it ${now.kind === 'hangs' ? 'hung' : 'was down'} for ${seconds(now.sinceMs)} s`
    const { count } = restarts
    log.warn('Restarting Docker', { unit, after, count, nextSeconds: seconds(restarts.nextMs - nowMs) })
    await services.restart(unit)
    const again = `restart ${count} in a row, the next in ${seconds(restarts.nextMs - nowMs)} s at the earliest`
    recordEvent({ type: 'Warning', reason: 'DockerRestarted', message: `Restarted ${unit}: ${after}; ${again}` })
  }

  return {
    async run(signal) {
      if (!services.isAvailable()) return aborted(signal)
      while (!signal.aborted) {
        try {
          await pass()
        } catch (error) {
          // Retry after the usual wait, not at once: systemd itself may hang.
          restarts = restarted(restarts, clock.monotonicMs())
          log.warn('Docker cannot be restarted', { unit, error })
          recordEvent({
            type: 'Warning',
            reason: 'DockerRestartFailed',
            message: `Cannot restart ${unit}: ${storyOf(error)}`,
          })
        }
        await clock.sleep(periodMs, signal)
      }
    },
  }
}
