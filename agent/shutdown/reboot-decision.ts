/** Does this machine carry out a request to restart, which the controller sends? */
import { type RebootRequest, rebootTimeRefusal } from '../../api/node/remote-reboot.ts'
import { rfc3339 } from '../../daemon/clock.ts'

export type RebootFacts = {
  readonly request: RebootRequest | undefined
  /** The kernel's, of this boot; '' where it has none. */
  readonly bootID: string
  /** `enableRemoteReboot` of the configuration. */
  readonly isEnabled: boolean
  /** A shutdown is under way, or logind has accepted this very request. */
  readonly isLeaving: boolean
  /** Beginning of the present boot, on the clock of `nowMs`. */
  readonly bootedAtMs: number
  readonly nowMs: number
}

export type RebootDecision =
  | { readonly decision: 'none' }
  | { readonly decision: 'refuse'; readonly because: string }
  | { readonly decision: 'reboot' }

/**
 * A request for another boot was carried out, or is outdated by a reboot for another reason. In a container without a boot ID of its
 * own the ID stays the same: there a request from before the start of the machine was carried out. Elsewhere the clock of the client is
 * behind, soon after a boot.
 */
export function rebootDecision(facts: RebootFacts): RebootDecision {
  const { request, bootID, isEnabled, isLeaving, bootedAtMs, nowMs } = facts
  if (request === undefined || bootID === '' || request.bootID !== bootID || isLeaving) return { decision: 'none' }
  if (Date.parse(request.requestedAt) < bootedAtMs)
    return { decision: 'refuse', because: `this machine has started since (${rfc3339(bootedAtMs)})` }
  if (!isEnabled)
    return { decision: 'refuse', because: 'the configuration of the agent does not have enableRemoteReboot: true' }
  const because = rebootTimeRefusal(request.requestedAt, nowMs)
  return because === undefined ? { decision: 'reboot' } : { decision: 'refuse', because }
}
