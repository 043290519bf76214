/** Loop: restarts this machine when the controller requests it and the configuration allows it, and records what it refuses. */
import type { RebootRequest } from '../../api/node/remote-reboot.ts'
import { alarm } from '../../daemon/alarm.ts'
import type { Reader } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { Departing } from './departure.ts'
import { rebootDecision } from './reboot-decision.ts'

/** The operation of logind that a reboot needs. */
export interface MachineReboot {
  /** Requests the reboot; it begins after the call. Rejects if the machine does not reboot, with the reason. */
  reboot(): Promise<void>
}

export type RebootManagerNeeds = {
  readonly machine: MachineReboot
  readonly reads: {
    readonly rebootRequest: Reader<RebootRequest | undefined>
    readonly goingDown: Reader<Departing | undefined>
  }
  /** The date, in milliseconds since 1970, also where the clock of this machine is wrong. */
  readonly nowMs: () => number
  readonly uptimeMs: () => number
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (event: NodeEvent) => void
}

export type RebootSettings = {
  /** The kernel's, of this boot. */
  readonly bootID: string
  readonly isEnabled: boolean
}

/** A lock of another program, such as a running upgrade, may end before the request expires. */
const againMs = 10_000
const idleMs = 24 * 3600_000

export function rebootManager(needs: RebootManagerNeeds, { bootID, isEnabled }: RebootSettings): Loop {
  const { machine, reads, nowMs, uptimeMs, clock, log, recordEvent } = needs
  const wake = alarm(clock)
  /** logind has accepted these requests. A shutdown that is cancelled afterwards stays cancelled. */
  let accepted: string | undefined
  /** A refusal and a failure are recorded once for each request. */
  let recorded = ''

  const record = (event: NodeEvent, { requestedAt }: RebootRequest) => {
    const { type, reason, message } = event
    if (recorded === `${requestedAt} ${reason}`) return log.debug(message, { requestedAt })
    recorded = `${requestedAt} ${reason}`
    log.warn('The machine is not restarted on request', { requestedAt, reason, why: message })
    recordEvent({ type, reason, message })
  }

  /** Returns when to try again. */
  const pass = async (): Promise<number> => {
    const request = reads.rebootRequest.get()
    if (request === undefined) return idleMs
    const isLeaving = reads.goingDown.get() !== undefined || accepted === request.requestedAt
    const now = nowMs()
    const decided = rebootDecision({ request, bootID, isEnabled, isLeaving, bootedAtMs: now - uptimeMs(), nowMs: now })
    if (decided.decision === 'none') return idleMs
    if (decided.decision === 'refuse') {
      const message = `The request of ${request.requestedAt} to reboot is refused: ${decided.because}`
      record({ type: 'Warning', reason: 'RebootRefused', message }, request)
      return idleMs
    }
    try {
      log.info('Restarting the machine on request', request)
      await machine.reboot()
      accepted = request.requestedAt
      return idleMs
    } catch (error) {
      const message = `Cannot reboot as requested at ${request.requestedAt}, trying again: ${storyOf(error)}`
      record({ type: 'Warning', reason: 'RebootFailed', message }, request)
      return againMs
    }
  }

  return {
    name: 'remote-reboot',
    async run(signal) {
      const stopListening = reads.rebootRequest.onChange(wake.ring)
      try {
        while (!signal.aborted) await wake.sleep(await pass(), signal)
      } finally {
        stopListening()
      }
    },
  }
}
