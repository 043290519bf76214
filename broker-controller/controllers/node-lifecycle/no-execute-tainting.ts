/** Puts the NoExecute taint on failed nodes, zone by zone, at the rate of the zone's state. */
import { alarm } from '../../../daemon/alarm.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { waitMs } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import type { NodeJudge } from './node-judgement.ts'
import { withNoExecuteTaint, withoutNoExecuteTaints } from './node-taints.ts'
import { type NodeWriteNeeds, rewriteNode } from './node-writes.ts'
import { zoneQueues } from './zone-queues.ts'
import { isReady, noZones, planZones, type ZoneCount, type ZoneSettings } from './zones.ts'

export type NoExecuteTaintingNeeds = NodeWriteNeeds & { readonly log: Log; readonly judge: NodeJudge }

export interface NoExecuteTainting {
  readonly run: (signal: AbortSignal) => Promise<void>
  add(name: string, zone: string): void
  remove(name: string): void
  /** Removes the NoExecute taints from the node. Rejects when it could not be written. */
  clear(name: string): Promise<void>
  /** Takes the number of ready and failed nodes of each zone; returns whether a full disruption began or ended with it. */
  planZones(counts: ReadonlyMap<string, ZoneCount>): 'entering' | 'leaving' | undefined
}

export function noExecuteTainting(
  needs: NoExecuteTaintingNeeds,
  settings: ZoneSettings & { readonly nodeEvictionRate: number },
): NoExecuteTainting {
  const { clock, log, judge, roster } = needs
  const queues = zoneQueues(settings.nodeEvictionRate)
  const bell = alarm(clock)
  let zones = noZones

  /** By the present counts: the zones are judged only after all nodes were checked, which takes long while the store is slow. */
  const due = () => {
    const nowMs = clock.monotonicMs()
    for (const [zone, rate] of planZones(zones, roster.counts(), settings).rates) queues.setRate(zone, rate, nowMs)
    return queues.take(nowMs)
  }

  /** A node that is ready, or whose failure is not proven any more, gets no taint. */
  const taint = async (name: string) => {
    if (judge(name)?.isProven !== true) return
    const now = rfc3339(clock.wallMs())
    await rewriteNode(needs, name, (node) => (isReady(node) ? undefined : withNoExecuteTaint(node, now)))
  }

  /** A failed write costs the token of the rate limit, and the node stays first in the queue. */
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
        for (const name of due()) await taintNode(name)
        await bell.sleep(waitMs(queues.nextMs(clock.monotonicMs()), clock.monotonicMs()), signal)
      }
    },
    add(name, zone) {
      queues.add(name, zone, clock.monotonicMs())
      bell.ring()
    },
    remove: (name) => queues.remove(name),
    async clear(name) {
      await rewriteNode(needs, name, withoutNoExecuteTaints)
    },
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
