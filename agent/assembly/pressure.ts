/** Builds the parts that keep memory, disk and process IDs available: eviction, storage limits, garbage collection. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { type EvictionNeeds, evictionManager } from '../eviction/eviction-manager.ts'
import { storageLimits } from '../eviction/storage-limits.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { podGarbageCollector } from '../pods/garbage/garbage-collector.ts'
import type { PodManager } from '../pods/pod-manager.ts'
import type { AgentCounters } from '../usage/agent-counters.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { Containers } from './containers.ts'

export type PressureParts = {
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly configuration: AgentConfiguration
  readonly containers: Containers
  readonly pods: Pick<PodManager, 'active' | 'stopped' | 'endPod' | 'needOf'>
  readonly event: (event: NodeEvent) => void
  /** Left out: this machine has no volumes of claims. */
  readonly claims?: EvictionNeeds['claims']
  readonly counters: Pick<AgentCounters, 'evicted'>
  readonly clock: Clock
  /** The clock of the loop of this name. */
  readonly clockFor: (loop: string) => Clock
  readonly log: Log
}

export function assemblePressure(parts: PressureParts): readonly Loop[] {
  const { board, write, configuration, containers, pods, event, counters, claims, clock, clockFor, log } = parts
  const { runtime, signals, usage } = containers
  const garbage = podGarbageCollector({ runtime, pods, signals, event, clock, log }, configuration.garbage)
  const eviction = evictionManager(
    {
      signals,
      pods,
      usage,
      reclaim: garbage,
      claims: claims ?? (async () => []),
      event,
      evicted: counters.evicted,
      clock: clockFor('eviction'),
      log,
      writes: write('pressures', 'imagesApart'),
    },
    {
      thresholds: [...configuration.evictionHard, ...configuration.evictionSoft],
      transitionMs: configuration.evictionPressureTransitionMs,
      maxPodGraceSeconds: configuration.evictionMaxPodGraceSeconds,
      stallWarnings: new Map(configuration.pressureStallWarning),
    },
  )
  const limits = storageLimits({ pods, usage, clock: clockFor('storage-limits'), log, reads: board })
  return [eviction, limits, garbage]
}
