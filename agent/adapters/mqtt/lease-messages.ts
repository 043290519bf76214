/** In which form the next heartbeat goes out: as short as the controller understands it, and now and then confirmed. */
import type { ControllerMessage } from '../../../api/topics.ts'
import { shortLeaseTopic, standingStatusBody } from '../../../api/topics.ts'

export type LeaseForm = {
  readonly topic: string
  readonly body: string
  /** The broker must answer: with QoS 1, or, where that is refused (`ping`), to a ping beside it. */
  readonly confirmed: 'no' | 'QoS 1' | 'ping'
}

export interface LeaseMessages {
  /** A new link: no message of its controller was received yet. */
  opened(): void
  heard(message: Pick<ControllerMessage, 'shortLeases'>): void
  /** The controller accepts a confirmation of the status in the next lease. */
  readonly canConfirmStatus: boolean
  /** The next lease confirms the status that was last published. */
  confirmStatus(): void
  next(digest: string): LeaseForm
}

/**
 * With 10 s between heartbeats and 20 s for an answer a controller that hangs is noticed within 140 s; each confirmation takes 160
 * bytes. A machine that is gone is noticed by the kernel's acknowledgements, and costs nothing: see `link-guard.ts`.
 */
const confirmedEvery = 12

/** `longTopic`: that of a controller which does not take short leases. */
export function leaseMessages(longTopic: string): LeaseMessages {
  let isShort = false
  let seq = 0
  let sinceConfirmed = 0
  let saidDigest: string | undefined
  let statusStands = false
  return {
    opened() {
      isShort = false
      sinceConfirmed = 0
      saidDigest = undefined
      statusStands = false
    },
    heard({ shortLeases = false }) {
      isShort = shortLeases
    },
    get canConfirmStatus() {
      return isShort
    },
    confirmStatus() {
      statusStands = true
    },
    next(digest) {
      seq++
      const isConfirmed = ++sinceConfirmed >= confirmedEvery
      if (isConfirmed) sinceConfirmed = 0
      const whole = JSON.stringify({ seq, digest })
      if (!isShort) return { topic: longTopic, body: whole, confirmed: isConfirmed ? 'ping' : 'no' }
      const isSame = digest === saidDigest
      const body = isSame ? (statusStands ? standingStatusBody : '') : whole
      saidDigest = digest
      if (isSame) statusStands = false
      return { topic: shortLeaseTopic, body, confirmed: isConfirmed ? 'QoS 1' : 'no' }
    },
  }
}
