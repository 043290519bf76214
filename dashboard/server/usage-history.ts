/** What each node used in the last day, in memory: four bytes for each step of two minutes, so 3 MB for 1,000 nodes. */
import type { NodeHistory, UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import type { Clock } from '../../daemon/clock.ts'

export interface UsageHistory {
  /** The newest values of a node. The last ones of a step count. */
  record(node: string, usage: UsageRow): void
  /** Undefined: nothing was recorded for this node. */
  of(node: string): NodeHistory | undefined
  /** Removes the nodes that are not among these. */
  keepOnly(nodes: ReadonlySet<string>): void
  readonly bytes: number
}

const stepSeconds = 120
const steps = (24 * 3600) / stepSeconds
const values = 4
const unknown = 255
/** 29 MB. */
const mostNodes = 10_000

type Ring = { readonly bytes: Uint8Array; step: number }

export function usageHistory({ clock }: { readonly clock: Clock }): UsageHistory {
  const rings = new Map<string, Ring>()
  const stepNow = () => Math.floor(clock.monotonicMs() / 1000 / stepSeconds)

  /** The ring with the steps forgotten for which nothing was recorded. */
  const moved = (ring: Ring): Ring => {
    const now = stepNow()
    for (let step = Math.max(ring.step + 1, now - steps + 1); step <= now; step++) {
      ring.bytes.fill(unknown, (step % steps) * values, ((step % steps) + 1) * values)
    }
    ring.step = now
    return ring
  }
  const newRing = (node: string): Ring | undefined => {
    if (rings.size >= mostNodes) return undefined
    const ring = { bytes: new Uint8Array(steps * values).fill(unknown), step: stepNow() }
    rings.set(node, ring)
    return ring
  }

  return {
    record(node, [cpu, memory, celsius, disk]) {
      const ring = rings.get(node) ?? newRing(node)
      if (ring === undefined) return
      const at = (moved(ring).step % steps) * values
      ring.bytes.set([cpu, memory, celsius, disk].map(asByte), at)
    },
    of(node) {
      const ring = rings.get(node)
      if (ring === undefined) return undefined
      const { bytes, step } = moved(ring)
      const column = (index: number) =>
        Array.from({ length: steps }, (_, i) => {
          const byte = bytes[((step + 1 + i) % steps) * values + index] ?? unknown
          return byte === unknown ? null : byte
        })
      const until = Math.floor(clock.wallMs() / 1000)
      return { stepSeconds, until, cpu: column(0), memory: column(1), celsius: column(2), disk: column(3) }
    },
    keepOnly(nodes) {
      for (const node of rings.keys()) if (!nodes.has(node)) rings.delete(node)
    },
    get bytes() {
      return rings.size * steps * values
    },
  }
}

function asByte(value: number | null): number {
  return value === null ? unknown : Math.max(0, Math.min(unknown - 1, Math.round(value)))
}
