/**
 * Metrics of the work queues of controllers, under the names of client-go (util/workqueue/metrics.go). Controllers start in many places,
 * and a process has one set of them: so what meters them belongs to the process, like the watch of its event loop, and naming a
 * queue does nothing without it.
 */
import type { MetricsRegistry } from './metrics-registry.ts'
import type { MetricFamily } from './prometheus-text.ts'
import type { WorkQueue } from './work-queue.ts'

type QueueCounts = Pick<WorkQueue, 'depth' | 'adds' | 'retries'>

/** Meter of one running controller. */
export interface QueueMeter {
  /** A key was taken after this wait. */
  waited(ms: number): void
  /** A visit has ended. */
  worked(ms: number): void
  /** The controller has ended. */
  end(): void
}

const noMeter: QueueMeter = { waited: () => undefined, worked: () => undefined, end: () => undefined }
/** 10 µs to 10 s. */
const bounds = Array.from({ length: 7 }, (_, power) => 10 ** (power - 5))

let meterOf: ((name: string, queue: QueueCounts) => QueueMeter) | undefined

/** The meter of the controller `name`, whose queue is read with each scrape until it ends. */
export function queueMeter(name: string, queue: QueueCounts): QueueMeter {
  return meterOf?.(name, queue) ?? noMeter
}

/** Meters the controllers of this process that start from now on, until the function it gives is called. Once for a registry. */
export function meterWorkQueues(registry: MetricsRegistry): () => void {
  const running = new Set<{ readonly name: string; readonly queue: QueueCounts }>()
  const queueDuration = registry.histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long keys waited in the queue of a controller.',
    labelNames: ['name'],
    bounds,
  })
  const workDuration = registry.histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long the visits of a controller took.',
    labelNames: ['name'],
    bounds,
  })
  registry.add(() => [
    family(running, 'depth', { name: 'workqueue_depth', type: 'gauge', help: 'Keys that wait for a visit.' }),
    family(running, 'adds', { name: 'workqueue_adds_total', type: 'counter', help: 'Keys that were added.' }),
    family(running, 'retries', { name: 'workqueue_retries_total', type: 'counter', help: 'Visits that failed.' }),
  ])
  meterOf = (name, queue) => {
    const own = { name, queue }
    running.add(own)
    return {
      waited: (ms) => queueDuration.observe({ name }, ms / 1000),
      worked: (ms) => workDuration.observe({ name }, ms / 1000),
      end: () => void running.delete(own),
    }
  }
  return () => {
    meterOf = undefined
  }
}

/** Controllers of one name are added up. */
function family(
  running: Iterable<{ readonly name: string; readonly queue: QueueCounts }>,
  field: keyof QueueCounts,
  described: Pick<MetricFamily, 'name' | 'type' | 'help'>,
): MetricFamily {
  const sums = new Map<string, number>()
  for (const { name, queue } of running) sums.set(name, (sums.get(name) ?? 0) + queue[field])
  return { ...described, samples: [...sums].map(([name, value]) => ({ labels: { name }, value })) }
}
