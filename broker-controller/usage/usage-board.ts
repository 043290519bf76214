/**
 * What nodes use, sampled only while it is queried: a query names its nodes here and reads what they reported; the sender
 * of stats requests reads here which nodes to poll, and the receiver stores their reports. In memory only, for two minutes.
 */
import type { Summary } from '../../api/node/stats.ts'
import type { MachineStats, StatsMessage } from '../../api/topics.ts'
import type { Clock } from '../../daemon/clock.ts'

/** `cpu` in billionths of a core, undefined as long as there is no rate; `memory` is the working set in bytes. */
export type Used = { readonly cpu: number | undefined; readonly memory: number | undefined }

export type ReceivedUsage = {
  /** Time of receipt by the controller's monotonic clock; `receivedWallMs` by its wall clock. */
  readonly receivedMs: number
  readonly receivedWallMs: number
  readonly windowSeconds: number
  readonly node: Used
  /** By pod uid, then by container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Used>>
  /** Only where `pollMachines` asked for it. */
  readonly machine?: MachineStats
  /** RFC 3339: the boot, as the node reports it. */
  readonly startTime?: string
}

export type UsageAsk = {
  readonly node: string
  readonly seconds: number
  readonly everySeconds: number
  readonly machine?: true
}

export interface UsageBoard {
  /** Polls these nodes. Resolves when each of them has reported, or did not within five seconds. */
  look(nodes: readonly string[], signal: AbortSignal): Promise<void>
  newest(node: string): ReceivedUsage | undefined
  /** Polls these nodes for some minutes, at longer intervals and with what the dashboard shows of machines. Waits for none. */
  pollMachines(nodes: readonly string[]): void

  /** The next requests to nodes, each once, at most `most`. */
  takeAsks(most: number): readonly UsageAsk[]
  /** Calls back when there are requests to send. One listener. */
  onAsk(listener: () => void): void
  receive(node: string, message: StatsMessage): void
  /** Removes what is old; false when nothing is left. */
  sweep(): boolean
}

/** The first answer takes a second, because a rate needs two readings. */
const patienceMs = 5_000
/** Interval of the check for answers; not once for each answer, because ten thousand may come at once. */
const lookAgainMs = 100
const keptMs = 2 * 60_000
const leastEverySeconds = 10
/** Reports of all nodes together per second, however many nodes are queried. */
const reportsPerSecond = 200
const lastingSeconds = 60
const longestWindowSeconds = 86_400

/** Interval for the dashboard: at 1,000 nodes 17 reports per second. */
const machinesEverySeconds = 30
const machinesEverySecondsAtMost = 60

type Asked = {
  readonly atMs: number
  readonly lastsMs: number
  readonly everySeconds: number
  readonly machine: boolean
}

export function usageBoard({ clock }: { readonly clock: Clock }): UsageBoard {
  const newestUsage = new Map<string, ReceivedUsage>()
  const asked = new Map<string, Asked>()
  const queue = new Map<string, UsageAsk>()
  let ring: () => void = () => undefined

  const everySecondsFor = (nodes: number) => Math.max(leastEverySeconds, Math.ceil(nodes / reportsPerSecond))

  /** A node has one interval and one form of report at a time: what an earlier query asked for stays until its end. */
  const ask = (node: string, wanted: number, wantsMachine: boolean) => {
    const now = clock.monotonicMs()
    const before = asked.get(node)
    const live = before !== undefined && now - before.atMs < before.lastsMs ? before : undefined
    const everySeconds = Math.min(wanted, live?.everySeconds ?? wanted)
    const machine = wantsMachine || live?.machine === true
    const isMore = live === undefined || everySeconds < live.everySeconds || machine !== live.machine
    if (!isMore && now - live.atMs < live.lastsMs / 2) return
    const seconds = Math.max(lastingSeconds, everySeconds * 3)
    // Records this query only: what the other one asked for ends when it is no longer repeated.
    asked.set(node, { atMs: now, lastsMs: seconds * 1000, everySeconds: wanted, machine: wantsMachine })
    queue.set(node, { node, seconds, everySeconds, ...(machine && { machine }) })
  }

  const newest = (node: string) => {
    const known = newestUsage.get(node)
    return known !== undefined && clock.monotonicMs() - known.receivedMs < keptMs ? known : undefined
  }

  /** False for a node that was polled and did not answer in time: later queries do not wait for it. */
  const isAwaited = (node: string) => {
    const { atMs } = asked.get(node) ?? { atMs: 0 }
    return newest(node) === undefined && clock.monotonicMs() - atMs < patienceMs
  }

  const until = async (satisfied: () => boolean, signal: AbortSignal) => {
    const untilMs = clock.monotonicMs() + patienceMs
    while (!satisfied() && !signal.aborted && clock.monotonicMs() < untilMs) {
      await clock.sleep(lookAgainMs, signal)
    }
  }

  return {
    newest,
    async look(nodes, signal) {
      const everySeconds = everySecondsFor(nodes.length)
      for (const node of nodes) ask(node, everySeconds, false)
      if (queue.size > 0) ring()
      let left = nodes.filter(isAwaited)
      await until(() => {
        left = left.filter(isAwaited)
        return left.length === 0
      }, signal)
    },
    pollMachines(nodes) {
      const everySeconds = nodes.length > 500 ? machinesEverySecondsAtMost : machinesEverySeconds
      for (const node of nodes) ask(node, everySeconds, true)
      if (queue.size > 0) ring()
    },
    takeAsks(most) {
      const taken = [...queue].slice(0, most)
      for (const [key] of taken) queue.delete(key)
      return taken.map(([, one]) => one)
    },
    onAsk(listener) {
      ring = listener
    },
    receive(node, { summary, windowSeconds = 0, machine }) {
      const receivedMs = clock.monotonicMs()
      newestUsage.set(node, {
        receivedMs,
        receivedWallMs: clock.wallMs(),
        windowSeconds: windowSeconds >= 0 && windowSeconds <= longestWindowSeconds ? windowSeconds : 0,
        node: usedBy(summary.node),
        ...(machine && { machine }),
        ...(summary.node.startTime !== undefined && { startTime: summary.node.startTime }),
        pods: new Map(
          summary.pods.map(({ podRef, containers }) => [
            podRef.uid,
            new Map(containers.map((container) => [container.name, usedBy(container)])),
          ]),
        ),
      })
    },
    sweep() {
      const now = clock.monotonicMs()
      for (const [node, { receivedMs }] of newestUsage) if (now - receivedMs >= keptMs) newestUsage.delete(node)
      for (const [node, { atMs, lastsMs }] of asked) if (now - atMs >= lastsMs) asked.delete(node)
      return newestUsage.size + asked.size > 0
    },
  }
}

function usedBy({ cpu, memory }: Pick<Summary['node'], 'cpu' | 'memory'>): Used {
  return { cpu: possible(cpu?.usageNanoCores), memory: possible(memory?.workingSetBytes) }
}

/** A client that cannot parse the number of one node shows no other node either. */
function possible(amount: number | undefined): number | undefined {
  return Number.isSafeInteger(amount) && Number(amount) >= 0 ? amount : undefined
}
