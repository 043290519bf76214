/** Puts the NoExecute taint on failed nodes, zone by zone, at the rate of the zone's state. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { waitMs } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import { zoneQueues } from './zone-queues.ts'
import { noZones, planZones, type ZoneCount, type ZoneSettings } from './zones.ts'

export type NoExecuteTaintingNeeds = {
  readonly clock: Clock
  readonly log: Log
  /** Taints the node unless it is ready or its failure is not proven any more. Rejects when it could not be written. */
  readonly taint: (name: string) => Promise<void>
}

export interface NoExecuteTainting {
  readonly run: (signal: AbortSignal) => Promise<void>
  add(name: string, zone: string): void
  remove(name: string): void
  /** Takes the number of ready and failed nodes of each zone; returns whether a full disruption began or ended with it. */
  planZones(counts: ReadonlyMap<string, ZoneCount>): 'entering' | 'leaving' | undefined
}

export function noExecuteTainting(
  { clock, log, taint }: NoExecuteTaintingNeeds,
  settings: ZoneSettings & { readonly nodeEvictionRate: number },
): NoExecuteTainting {
  const queues = zoneQueues(settings.nodeEvictionRate)
  const bell = alarm(clock)
  let zones = noZones

  /** A failure costs the token, and the node stays first. */
  const taintNode = async (name: string) => {
    try {
      await taint(name)
      queues.remove(name)
    } catch (error) {
      log.warn('Node not tainted', { node: name, error })
    }
  }

  return {
    async run(signal) {
      while (!signal.aborted) {
        for (const name of queues.take(clock.monotonicMs())) await taintNode(name)
        await bell.sleep(waitMs(queues.nextMs(clock.monotonicMs()), clock.monotonicMs()), signal)
      }
    },
    add(name, zone) {
      queues.add(name, zone, clock.monotonicMs())
      bell.ring()
    },
    remove: (name) => queues.remove(name),
    planZones(counts) {
      const plan = planZones(zones, counts, settings)
      for (const [zone, rate] of plan.rates) queues.setRate(zone, rate, clock.monotonicMs())
      bell.ring()
      for (const [zone, state] of plan.zones.states) {
        if (zones.states.get(zone) !== state)
          log.info('Zone state changed', { zone: zone.replaceAll('\u0000', ''), state })
      }
      zones = plan.zones
      return plan.turn
    },
  }
}
