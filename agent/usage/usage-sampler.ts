/** Loop: samples usage while it is queried, and not at all otherwise. */
import type { Summary } from '../../api/node/stats.ts'
import type { CallMessage, MachineStats, StatsMessage } from '../../api/topics.ts'
import { aborted } from '../../daemon/aborted.ts'
import { type Alarm, alarm } from '../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { withinOr } from '../../daemon/deadline.ts'
import type { Log } from '../../daemon/log.ts'
import { type Rates, ratesBetween, type Sample } from './sample.ts'
import { summaryOf } from './summary.ts'
import type { NodeUsage, PodUsage } from './usage.ts'

export type UsageSamplerNeeds = {
  readonly pods: PodUsage
  readonly node: NodeUsage
  /** The hottest sensor and the load, read now. */
  readonly machine: () => Pick<MachineStats, 'celsius' | 'load'>
  /** Sends it now; without a connection it is dropped. */
  readonly send: (message: StatsMessage) => void
  readonly clock: Clock
  readonly log: Log
}

export interface UsageSampler {
  /** The newest, at most 10 s old. The first takes a second: a rate needs two readings. */
  summary(brief: boolean): Promise<Summary>
  /** The newest readings; with `disks`, those of disks too if they can be read within 2 s. */
  sample(disks: boolean): Promise<{ readonly sample: Sample; readonly rates: Rates | undefined }>
  /** Publishes for a while. */
  call(asked: CallMessage): void
  run(signal: AbortSignal): Promise<void>
}

const periodMs = 10_000
const firstWindowMs = 1_000
/** Sampling ends this long after the last query. */
const sampledMs = 90_000
/** Reading disk usage walks folders. A query waits no longer for it. */
const diskTimeoutMs = 2_000
const longestCallMs = 10 * 60_000
/** The broker ends a connection that sends more in one packet than 256 KiB. */
const mostBytes = 200 * 1024

export function usageSampler(needs: UsageSamplerNeeds, nodeName: string): UsageSampler {
  const { pods, node, clock, log } = needs
  const stopped = new AbortController()
  let earlier: Sample | undefined
  let latest: Sample | undefined
  let queriedMs = 0
  let reading: Promise<Sample> | undefined
  let sampling: Promise<void> | undefined

  const read = async (): Promise<Sample> => {
    try {
      const [atMs, wallMs] = [clock.monotonicMs(), clock.wallMs()]
      const [podReadings, nodeReading] = await Promise.all([pods.podReadings(), node.nodeReading()])
      const sample = { atMs, wallMs, node: nodeReading, pods: podReadings }
      earlier = latest
      latest = sample
      return sample
    } finally {
      reading = undefined
    }
  }
  const readOnce = () => {
    reading ??= read()
    return reading
  }

  const keepSampling = async () => {
    try {
      while (!stopped.signal.aborted && clock.monotonicMs() - queriedMs < sampledMs) {
        const age = latest === undefined ? periodMs : clock.monotonicMs() - latest.atMs
        if (age >= periodMs) await readOnce()
        else await clock.sleep(periodMs - age, stopped.signal)
      }
    } catch (error) {
      log.debug('Usage not read', { error })
    } finally {
      sampling = undefined
      if (clock.monotonicMs() - queriedMs >= sampledMs) {
        earlier = undefined
        latest = undefined
      }
    }
  }

  const sample: UsageSampler['sample'] = async (disks) => {
    queriedMs = clock.monotonicMs()
    const isFresh = latest !== undefined && clock.monotonicMs() - latest.atMs <= periodMs
    if (!isFresh) await readOnce()
    if (earlier === undefined || (latest !== undefined && ratesBetween(earlier, latest) === undefined)) {
      await clock.sleep(firstWindowMs, stopped.signal)
      await readOnce()
    }
    sampling ??= keepSampling()
    const found = latest ?? (await readOnce())
    const readDisks = () => pods.podDiskUsage().catch(() => undefined)
    const walked = disks ? await withinOr(diskTimeoutMs, undefined, readDisks(), clock) : undefined
    return {
      sample: walked === undefined ? found : { ...found, disks: walked },
      rates: ratesBetween(earlier, found),
    }
  }

  const publisher = usagePublisher({ ...needs, sample, nodeName, stopped: stopped.signal })

  return {
    async summary(brief) {
      const { sample: found, rates } = await sample(!brief)
      return summaryOf(nodeName, found, rates, brief)
    },
    sample,
    call: publisher.call,
    async run(signal) {
      await aborted(signal)
      stopped.abort()
      await Promise.all([sampling, publisher.ended()])
    },
  }
}

type PublisherNeeds = Pick<UsageSamplerNeeds, 'machine' | 'send' | 'clock' | 'log'> & {
  readonly sample: UsageSampler['sample']
  readonly nodeName: string
  readonly stopped: AbortSignal
}

/** Publishes the usage once, or for a while at an interval; a later call replaces the time and the interval. */
function usagePublisher({ sample, machine, send, nodeName, stopped, clock, log }: PublisherNeeds) {
  let wanted: { readonly untilMs: number; readonly everyMs: number; readonly machine: boolean } | undefined
  let publishing: Promise<void> | undefined
  const called: Alarm = alarm(clock)

  const message = async (whole: boolean): Promise<StatsMessage> => {
    const { sample: found, rates } = await sample(whole)
    return {
      time: rfc3339(found.wallMs),
      ...(rates !== undefined && { windowSeconds: rates.windowMs / 1000 }),
      ...(whole && { whole }),
      ...(wanted?.machine && { machine: { ...machine(), ...diskOf(found) } }),
      summary: summaryOf(nodeName, found, rates, !whole),
    }
  }

  const publish = async (whole: boolean) => {
    try {
      const stats = fitting(await message(whole))
      if (stats !== undefined) send(stats)
      else log.warn('Usage not sent: the message is too large', { node: nodeName })
    } catch (error) {
      log.debug('Usage not sent', { error })
    }
  }

  const keepPublishing = async () => {
    while (!stopped.aborted && wanted !== undefined && clock.monotonicMs() < wanted.untilMs) {
      await publish(false)
      await called.sleep(wanted.everyMs, stopped)
    }
    publishing = undefined
  }

  return {
    call({ seconds = 60, everySeconds = 10, whole = false, machine = false }: CallMessage) {
      if (whole) return void publish(true)
      const forMs = Math.min(seconds * 1000, longestCallMs)
      wanted = { untilMs: clock.monotonicMs() + forMs, everyMs: Math.max(everySeconds * 1000, 1_000), machine }
      if (publishing === undefined) publishing = keepPublishing()
      else called.ring()
    },
    ended: async () => publishing,
  }
}

function diskOf({ node: { fs } }: Sample): Pick<MachineStats, 'diskUsedBytes' | 'diskCapacityBytes'> {
  return fs === undefined
    ? {}
    : { diskUsedBytes: fs.capacityBytes - fs.availableBytes, diskCapacityBytes: fs.capacityBytes }
}

/** The message, or without the parts that make it too large; undefined if it is too large even so. */
function fitting(message: StatsMessage): StatsMessage | undefined {
  if (JSON.stringify(message).length <= mostBytes) return message
  const pods = message.summary.pods.map(({ podRef, containers }) => ({
    podRef,
    containers: containers.map(({ name, cpu, memory }) => ({ name, ...(cpu && { cpu }), ...(memory && { memory }) })),
  }))
  const less = { ...message, summary: { ...message.summary, pods } }
  return JSON.stringify(less).length <= mostBytes ? less : undefined
}
