/** The nodes that are to be tainted, queued by zone. */
import { type RateLimitedQueue, rateLimitedQueue } from './rate-limited-queue.ts'

export interface ZoneQueues {
  /** In the queue of this zone; it leaves any other. */
  add(name: string, zone: string, nowMs: number): void
  remove(name: string): void
  has(name: string): boolean
  /** Nodes a second, also for a zone none of whose nodes has been queued yet. */
  setRate(zone: string, rate: number, nowMs: number): void
  /** The first of each zone whose time has come; they stay queued until removed. */
  take(nowMs: number): string[]
  nextMs(nowMs: number): number | undefined
}

export function zoneQueues(usualRate: number): ZoneQueues {
  const queues = new Map<string, RateLimitedQueue>()
  const zones = new Map<string, string>()

  const queueOf = (zone: string, nowMs: number) => {
    const queue = queues.get(zone) ?? rateLimitedQueue(usualRate, nowMs)
    queues.set(zone, queue)
    return queue
  }

  const remove = (name: string) => {
    const zone = zones.get(name)
    if (zone === undefined) return
    zones.delete(name)
    queues.get(zone)?.remove(name)
  }

  return {
    add(name, zone, nowMs) {
      if (zones.get(name) === zone) return
      remove(name)
      zones.set(name, zone)
      queueOf(zone, nowMs).add(name)
    },
    remove,
    has: (name) => zones.has(name),
    setRate: (zone, rate, nowMs) => queueOf(zone, nowMs).setRate(rate, nowMs),
    take: (nowMs) => [...queues.values()].flatMap((queue) => queue.take(nowMs) ?? []),
    nextMs(nowMs) {
      const moments = [...queues.values()].flatMap((queue) => queue.nextMs(nowMs) ?? [])
      return moments.length === 0 ? undefined : Math.min(...moments)
    },
  }
}
