/** In which form the next heartbeat goes out: as short as the controller understands it, and now and then confirmed. */
import { heartbeatsPerLease } from '../../../api/lease.ts'
import type { ControllerMessage } from '../../../api/topics.ts'
import { shortLeaseTopic, standingStatusBody } from '../../../api/topics.ts'
import { gracePerLease } from './controller-terms.ts'

export type LeaseForm = {
  readonly topic: string
  readonly body: string
  /** The broker must answer: with QoS 1, or, where that is refused (`ping`), to a ping beside it. */
  readonly confirmed: 'no' | 'QoS 1' | 'ping'
}

export interface LeaseMessages {
  /** A new link: no message of its controller was received yet. */
  opened(): void
  received(message: Pick<ControllerMessage, 'shortLeases'>): void
  /** The controller accepts a confirmation of the status in the next lease. */
  readonly canConfirmStatus: boolean
  /** The next lease confirms the status that was last published. */
  confirmStatus(): void
  next(digest: string): LeaseForm
}

/** What the controller grants: see `controller-terms.ts`. */
export type LeaseTerms = { readonly leaseDurationSeconds: number; readonly graceMs: number | undefined }

/** As long as the broker may take for an answer. */
const answerMs = 20_000

/**
 * Heartbeats for each confirmed one, which is the last of them: as many as fit into the controller's grace period, so
 * that a hung controller is noticed within this period and the time of an answer. At least one, and at most 12, where
 * an operator allows silence of many minutes. Each confirmation takes 132 bytes: to include the wait for the answer in
 * the grace period would cost another 5 MB a month, and systemd ends a hung controller after a minute. With
 * `othersLead` it is included, as another controller may lead meanwhile: the node must connect to that one before its
 * grace period is over. The kernel's acknowledgements show that a machine is gone, at no cost: see `link-guard.ts`.
 */
export function heartbeatsPerConfirmation({ leaseDurationSeconds, graceMs }: LeaseTerms, othersLead: boolean): number {
  const periodMs = (leaseDurationSeconds * 1000) / heartbeatsPerLease
  const silentMs = (graceMs ?? leaseDurationSeconds * 1000 * gracePerLease) - (othersLead ? answerMs : 0)
  return Math.min(mostUnconfirmed, Math.max(1, Math.floor(silentMs / periodMs)))
}

const mostUnconfirmed = 12

/**
 * `longTopic`: that of a controller which does not take short leases. `terms` are read at each heartbeat, and whether there are other
 * controllers that may lead.
 */
export function leaseMessages(
  longTopic: string,
  terms: LeaseTerms,
  othersLead: () => boolean = () => false,
): LeaseMessages {
  let isShort = false
  let seq = 0
  let sinceConfirmed = 0
  let sentDigest: string | undefined
  let statusStands = false
  return {
    opened() {
      isShort = false
      sinceConfirmed = 0
      sentDigest = undefined
      statusStands = false
    },
    received({ shortLeases = false }) {
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
      const isConfirmed = ++sinceConfirmed >= heartbeatsPerConfirmation(terms, othersLead())
      if (isConfirmed) sinceConfirmed = 0
      const whole = JSON.stringify({ seq, digest })
      if (!isShort) return { topic: longTopic, body: whole, confirmed: isConfirmed ? 'ping' : 'no' }
      const isSame = digest === sentDigest
      const body = isSame ? (statusStands ? standingStatusBody : '') : whole
      sentDigest = digest
      statusStands = statusStands && !isSame
      return { topic: shortLeaseTopic, body, confirmed: isConfirmed ? 'QoS 1' : 'no' }
    },
  }
}
