/**
 * A rollout over simulated machines. The controller's own functions decide, and read and write what a fleet has: the annotations of Nodes
 * and the ConfigMap of the rollout. Only its loop, the store and the network are not there.
 */
import type { Node } from '../../../../api/node.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { nextRollout, type RolloutPlan, type RolloutState } from '../next-rollout.ts'
import { rolloutNode, withoutRelease, withRelease, withReport } from '../node-facts.ts'
import type { FleetRelease, RolloutNode } from '../rollout-facts.ts'
import { type RolloutWish, readRollout, rolloutCommands, rolloutData } from '../rollout-object.ts'
import type { RolloutRules } from '../rollout-rules.ts'
import { type SimulatedMachine, simulatedMachine } from './simulated-machine.ts'

export type SimulatedFleet = {
  readonly nodes: number
  readonly perLink: number
  /** Take back each release, whatever it is. */
  readonly badPercent: number
  /** Are off at any moment: each node now and then for a while. */
  readonly offPercent: number
  readonly rules: RolloutRules
  /** What the release does to so many of the other boards. */
  readonly fault?: { readonly kind: 'takenBack' | 'goesAway'; readonly percent: number } | undefined
  /** An operator resumes a paused rollout so long after the pause; undefined: none does. */
  readonly resumeAfterMs?: number | undefined
  /** The simulation ends when so many percent of the boards that are not bad run the release. */
  readonly enoughPercent?: number
  readonly seed?: number
}

export type SimulatedRollout = {
  readonly plan: RolloutPlan
  /** What the next decision would be made of. */
  readonly state: RolloutState
  readonly members: readonly RolloutNode[]
  /** Nodes that ran the release at any time. */
  readonly ran: number
  readonly committed: number
  readonly failed: number
  readonly pauses: number
  /** Until the rollout was complete, or paused for good. */
  readonly hours: number
  /** Until so many percent of the boards that are not bad ran the release; undefined: they never did. */
  readonly hoursTo: (percent: number) => number | undefined
  /** Most connected nodes of one link that were updating at a time. */
  readonly mostOnLink: number
  /** CPU time of each decision. */
  readonly decisionsMs: readonly number[]
}

export const simulatedTarget: FleetRelease = { version: '2.0.0', sequence: 2, digest: '2'.repeat(64), floor: 1 }
const before = { version: '1.0.0', sequence: 1 }
const startMs = Date.parse('2026-01-01T00:00:00Z')
/** What agents report in this time arrives together, and the controller decides once about it. */
const stepMs = 60_000
const [minuteMs, hourMs] = [60_000, 3_600_000]
const noControllers: ReadonlySet<string> = new Set()

/** Until the rollout is complete, or paused for good and nothing is on trial any more, or enough have it, or `mostHours` have passed. */
export function simulateRollout(fleet: SimulatedFleet, mostHours = 1_000): SimulatedRollout {
  const time = simulatedTime()
  const changed = new Set<number>()
  const machines = machinesOf(fleet, time, (at) => void changed.add(at))
  const good = machines.filter(({ isBad }) => !isBad).length
  const countOf = (percent: number) => Math.ceil((good * percent) / 100)
  const enough = fleet.enoughPercent === undefined ? Number.POSITIVE_INFINITY : countOf(fleet.enoughPercent)
  const members: RolloutNode[] = []
  const committedMs = new Map<number, number>()
  const controller = simulatedController(fleet, time, machines)
  const read = (at: number) => {
    const member = controller.read(at)
    if (member === undefined) return
    members[at] = member
    if (member.sequence === simulatedTarget.sequence && !committedMs.has(at)) committedMs.set(at, time.nowMs())
  }
  for (const at of machines.keys()) read(at)
  let [plan, endMs, mostOnLink] = [controller.decide(members), startMs, 0]
  const isUnderWay = () => {
    const { phase } = plan.status
    if (time.nowMs() - startMs >= mostHours * hourMs || committedMs.size >= enough) return false
    const isOver = phase === 'Complete' || (phase === 'Paused' && fleet.resumeAfterMs === undefined)
    return !isOver || members.some(({ report }) => report?.outcome === 'trial')
  }
  while (isUnderWay()) {
    time.step()
    for (const at of changed) read(at)
    if (changed.size > 0 || controller.isDue()) {
      changed.clear()
      const { phase } = plan.status
      plan = controller.decide(members)
      if (plan.status.phase !== phase) endMs = time.nowMs()
      mostOnLink = Math.max(mostOnLink, busiestLink(members))
    }
  }
  const sum = (of: 'committed' | 'failed') => plan.status.rings.reduce((all, ring) => all + ring[of], 0)
  return {
    ...{ plan, state: plan.state, members, mostOnLink, hours: (endMs - startMs) / hourMs },
    ...{ committed: sum('committed'), failed: sum('failed'), ...controller.counts() },
    ran: machines.filter(({ machine }) => machine.hasTried).length,
    hoursTo(percent) {
      const ms = [...committedMs.values()][countOf(percent) - 1]
      return ms === undefined ? undefined : (ms - startMs) / hourMs
    },
  }
}

type PlacedMachine = { readonly machine: SimulatedMachine; readonly isBad: boolean }
type SimulatedTime = ReturnType<typeof simulatedTime>

/** In steps; what is to be done at a time is done in the first step that is not before it. */
function simulatedTime() {
  const acts = new Map<number, (() => void)[]>()
  let now = 0
  return {
    nowMs: () => startMs + now * stepMs,
    at(ms: number, act: () => void) {
      const step = Math.max(now + 1, Math.ceil((ms - startMs) / stepMs))
      const own = acts.get(step) ?? []
      own.push(act)
      acts.set(step, own)
    },
    step() {
      now += 1
      for (const act of acts.get(now) ?? []) act()
      acts.delete(now)
    },
  }
}

function machinesOf(
  { nodes, perLink, badPercent, offPercent, fault, seed = 7 }: SimulatedFleet,
  { nowMs, at: atTime }: SimulatedTime,
  changed: (at: number) => void,
): readonly PlacedMachine[] {
  const random = seededRandom(seed)
  return Array.from({ length: nodes }, (_, at) => {
    const link = Math.floor(at / perLink)
    const isBad = random() * 100 < badPercent
    const isHit = fault !== undefined && random() * 100 < fault.percent
    const traits = {
      ...{
        name: nameOf(at),
        link: `link-${link}`,
        zone: `zone-${link % 4}`,
        address: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`,
      },
      ...{ isBad, fault: isHit ? fault.kind : undefined, offPart: offPercent / 100 },
      // From 20 s to 10 min, half of them within 110 s.
      downloadMs: 20_000 * 30 ** random(),
      // Three starts that end take a minute; a version without a lease is taken back after five.
      failsAfterMs: minuteMs * (1 + 5 * random()),
    }
    const world = { nowMs, at: atTime, random, changed: () => changed(at) }
    return { machine: simulatedMachine(traits, before, world), isBad }
  })
}

const nameOf = (at: number) => `pi-${at}`
const placeOf = (name: string) => Number(name.slice('pi-'.length))

/** One pass of `rollout-controller.ts` at a time, and the operator. */
function simulatedController(fleet: SimulatedFleet, time: SimulatedTime, machines: readonly PlacedMachine[]) {
  const wish: RolloutWish = { target: simulatedTarget, releases: [simulatedTarget], rules: fleet.rules }
  const decisionsMs: number[] = []
  let data: { readonly [key: string]: string } = { rollout: JSON.stringify(wish) }
  let [dueMs, pauses] = [Number.POSITIVE_INFINITY, 0]
  const change = (name: string, made: (node: Node) => Node | undefined) => {
    const machine = machines[placeOf(name)]?.machine
    const node = machine && made(machine.node)
    if (node !== undefined) machine?.write(node)
  }
  const resume = () => {
    const written = Object.entries({ ...data, ...rolloutCommands.resume(rfc3339(time.nowMs())) })
    data = Object.fromEntries(written.flatMap(([key, value]) => (value === null ? [] : [[key, value]])))
    dueMs = time.nowMs()
  }
  return {
    isDue: () => dueMs <= time.nowMs(),
    /** The node as the next decision reads it. */
    read(at: number): RolloutNode | undefined {
      change(nameOf(at), (node) => withReport(node, time.nowMs()))
      const node = machines[at]?.machine.node
      return node && rolloutNode(node, wish.rules, noControllers)
    },
    decide(nodes: readonly RolloutNode[]): RolloutPlan {
      const found = readRollout({ data })
      if (typeof found !== 'object') throw new Error(`The rollout cannot be read: ${found ?? 'there is none'}`)
      const began = process.cpuUsage()
      const plan = nextRollout(found.state, { ...found.wish, nodes, nowMs: time.nowMs() })
      const { user, system } = process.cpuUsage(began)
      decisionsMs.push((user + system) / 1000)
      for (const name of plan.withdraw) change(name, withoutRelease)
      for (const { node, release } of plan.admit) change(node, (one) => withRelease(one, release, time.nowMs()))
      data = { ...data, ...rolloutData({ data }, found.wish, plan.state, plan.status) }
      dueMs = plan.dueMs ?? Number.POSITIVE_INFINITY
      if (found.state.paused === undefined && plan.state.paused !== undefined) {
        pauses += 1
        if (fleet.resumeAfterMs !== undefined) time.at(time.nowMs() + fleet.resumeAfterMs, resume)
      }
      return plan
    },
    counts: () => ({ pauses, decisionsMs }),
  }
}

function busiestLink(nodes: readonly RolloutNode[]): number {
  const links = new Map<string, number>()
  for (const { link, isConnected, admitted, report } of nodes)
    if (isConnected && admitted !== undefined && (report === undefined || report.outcome === 'trial'))
      links.set(link, (links.get(link) ?? 0) + 1)
  return Math.max(0, ...links.values())
}
