/** Routes and peers that an earlier agent has put in place: how long do they stay as they are? */
import type { Alarm } from '../../../daemon/alarm.ts'
import type { Reader } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { RouteSync } from './route-sync.ts'

export type EarlierRoutesNeeds = {
  readonly routes: Pick<RouteSync, 'hasEarlier'>
  readonly reads: {
    /** The message of the network is the controller's. False: that of the checkpoint. */
    readonly networkCurrent: Reader<boolean>
  }
  readonly clock: Clock
}

/** For a connection and the controller's messages; the rules of the kernel stay for the same time. */
const holdMs = 8_000

/**
 * Resolves at once where there are none; else when the controller's messages are there, or after 8 s. The checkpoint may be a minute older
 * than they are: what it lacks would be removed, and made again a moment later. `changed` rings when a message arrives.
 */
export async function holdEarlierRoutes(
  { routes, reads, clock }: EarlierRoutesNeeds,
  changed: Alarm,
  signal: AbortSignal,
): Promise<void> {
  const endMs = clock.monotonicMs() + holdMs
  const isOver = () => signal.aborted || reads.networkCurrent.get() || clock.monotonicMs() >= endMs
  if (isOver() || !(await routes.hasEarlier().catch(() => false))) return
  while (!isOver()) await changed.sleep(endMs - clock.monotonicMs(), signal)
}
