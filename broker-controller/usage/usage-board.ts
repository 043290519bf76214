/**
 * What nodes use, as far as anybody wants to know: who looks writes here what it looks at, and reads what was heard; who
 * talks to nodes reads here what to ask them, and writes what they said. In memory only, forgotten after two minutes.
 */
import type { Summary } from '../../api/node/stats.ts'
import type { StatsMessage } from '../../api/topics.ts'
import type { Clock } from '../../daemon/clock.ts'

/** `cpu` in billionths of a core, undefined as long as there is no rate; `memory` is the working set in bytes. */
export type Used = { readonly cpu: number | undefined; readonly memory: number | undefined }

export type HeardUsage = {
  /** By our own clocks. */
  readonly heardMs: number
  readonly heardWallMs: number
  readonly windowSeconds: number
  readonly node: Used
  /** By pod uid, then by container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Used>>
}

export type UsageAsk = {
  readonly node: string
  readonly seconds: number
  readonly everySeconds: number
  readonly whole: boolean
}

export interface UsageBoard {
  /** Somebody looks at these nodes. Resolves when each of them has been heard, or it makes no sense to wait longer. */
  look(nodes: readonly string[], signal: AbortSignal): Promise<void>
  newest(node: string): HeardUsage | undefined
  /** Everything this node can tell; undefined when it does not answer. */
  whole(node: string, signal: AbortSignal): Promise<Summary | undefined>

  /** What is to be asked next, each once; at most so many. */
  takeAsks(most: number): readonly UsageAsk[]
  /** Calls back when there is something to ask. One listener. */
  onAsk(listener: () => void): void
  told(node: string, message: StatsMessage): void
  /** Forgets what is old; false when nothing is left. */
  sweep(): boolean
}

/** The first answer takes a node a second, for it reads twice. */
const patienceMs = 5_000
/** Looked again now and then, not with every answer: ten thousand may come at once. */
const lookAgainMs = 100
const keptMs = 2 * 60_000
const leastEverySeconds = 10
/** Nodes that tell us something each second, however many are looked at. */
const tellingPerSecond = 200
const lastingSeconds = 60
const longestWindowSeconds = 86_400

type Asked = { readonly atMs: number; readonly lastsMs: number }

export function usageBoard({ clock }: { readonly clock: Clock }): UsageBoard {
  const heard = new Map<string, HeardUsage>()
  const wholes = new Map<string, { readonly heardMs: number; readonly summary: Summary }>()
  const asked = new Map<string, Asked>()
  const queue = new Map<string, UsageAsk>()
  let ring: () => void = () => undefined

  const everySecondsFor = (nodes: number) => Math.max(leastEverySeconds, Math.ceil(nodes / tellingPerSecond))

  const ask = (node: string, everySeconds: number) => {
    const now = clock.monotonicMs()
    const before = asked.get(node)
    if (before !== undefined && now - before.atMs < before.lastsMs / 2) return
    const seconds = Math.max(lastingSeconds, everySeconds * 3)
    asked.set(node, { atMs: now, lastsMs: seconds * 1000 })
    queue.set(node, { node, seconds, everySeconds, whole: false })
  }

  const newest = (node: string) => {
    const known = heard.get(node)
    return known !== undefined && clock.monotonicMs() - known.heardMs < keptMs ? known : undefined
  }

  /** One that was asked and has not answered in time keeps nobody waiting again. */
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
      for (const node of nodes) ask(node, everySeconds)
      if (queue.size > 0) ring()
      let left = nodes.filter(isAwaited)
      await until(() => {
        left = left.filter(isAwaited)
        return left.length === 0
      }, signal)
    },
    async whole(node, signal) {
      const fresh = () => {
        const known = wholes.get(node)
        return known !== undefined && clock.monotonicMs() - known.heardMs < leastEverySeconds * 1000 ? known : undefined
      }
      if (fresh() === undefined) {
        queue.set(`${node} whole`, { node, seconds: 0, everySeconds: 0, whole: true })
        ring()
        await until(() => fresh() !== undefined, signal)
      }
      return fresh()?.summary
    },
    takeAsks(most) {
      const taken = [...queue].slice(0, most)
      for (const [key] of taken) queue.delete(key)
      return taken.map(([, one]) => one)
    },
    onAsk(listener) {
      ring = listener
    },
    told(node, { summary, windowSeconds = 0, whole = false }) {
      const heardMs = clock.monotonicMs()
      if (whole) wholes.set(node, { heardMs, summary })
      heard.set(node, {
        heardMs,
        heardWallMs: clock.wallMs(),
        windowSeconds: windowSeconds >= 0 && windowSeconds <= longestWindowSeconds ? windowSeconds : 0,
        node: usedBy(summary.node),
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
      for (const [node, { heardMs }] of heard) if (now - heardMs >= keptMs) heard.delete(node)
      for (const [node, { heardMs }] of wholes) if (now - heardMs >= keptMs) wholes.delete(node)
      for (const [node, { atMs, lastsMs }] of asked) if (now - atMs >= lastsMs) asked.delete(node)
      return heard.size + wholes.size + asked.size > 0
    },
  }
}

function usedBy({ cpu, memory }: Pick<Summary['node'], 'cpu' | 'memory'>): Used {
  return { cpu: possible(cpu?.usageNanoCores), memory: possible(memory?.workingSetBytes) }
}

/** A client that cannot read one node's number shows none of the others. */
function possible(amount: number | undefined): number | undefined {
  return Number.isSafeInteger(amount) && Number(amount) >= 0 ? amount : undefined
}
