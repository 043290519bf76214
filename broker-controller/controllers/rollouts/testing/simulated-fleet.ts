/** Nodes that take the releases that they are given, in simulated time: some boards are bad, and some are switched off for a while. */
import { nextRollout, type RolloutPlan, type RolloutState } from '../next-rollout.ts'
import type { FleetRelease, RolloutNode } from '../rollout-facts.ts'
import type { RolloutRules } from '../rollout-rules.ts'

export type SimulatedFleet = {
  readonly nodes: number
  readonly perLink: number
  /** Take back each release. */
  readonly badPercent: number
  readonly offPercent: number
  readonly rules: RolloutRules
  /** What the release does to a board that is good. */
  readonly outcome: 'committed' | 'rolledBack' | 'goes away'
}

export type Simulation = {
  readonly plan: RolloutPlan
  readonly nodes: readonly RolloutNode[]
  /** Nodes that ran the release at any time. */
  readonly ran: number
  /** Most that were updating at a time, on one link. */
  readonly mostOnLink: number
  readonly hours: number
}

const stepMs = 15 * 60_000
const trialMs = 15 * 60_000

/** Until the rollout is complete or paused and nothing is on trial, or `mostHours` have passed. */
export function simulateRollout(
  fleet: SimulatedFleet,
  target: FleetRelease,
  before: RolloutState,
  mostHours = 200,
): Simulation {
  const draw = draws(7)
  const bad = new Set<string>()
  const downloadMs = new Map<string, number>()
  let nodes: readonly RolloutNode[] = Array.from({ length: fleet.nodes }, (_, at) => {
    const name = `pi-${at}`
    if (draw() * 100 < fleet.badPercent) bad.add(name)
    downloadMs.set(name, draw() * 10 * 60_000)
    const link = Math.floor(at / fleet.perLink)
    return {
      name,
      labels: {},
      link: `link-${link}`,
      zone: `zone-${link % 4}`,
      sequence: 1,
      isConnected: draw() * 100 >= fleet.offPercent,
      lostSinceMs: undefined,
      isController: at === 0,
      penaltyUntilMs: 0,
      admitted: undefined,
      report: undefined,
    }
  })
  const ran = new Set<string>()
  let [state, nowMs, mostOnLink] = [before, 0, 0]
  for (;;) {
    const plan = nextRollout(state, { target, releases: [target], rules: fleet.rules, nodes, nowMs })
    state = plan.state
    const admitted = new Set(plan.admit.map(({ node }) => node))
    const withdrawn = new Set(plan.withdraw)
    nodes = nodes.map((node) =>
      admitted.has(node.name)
        ? { ...node, admitted: { digest: target.digest, sequence: target.sequence, atMs: nowMs } }
        : withdrawn.has(node.name)
          ? { ...node, admitted: undefined }
          : node,
    )
    mostOnLink = Math.max(mostOnLink, busiestLink(nodes))
    const isStill = plan.admit.length === 0 && !nodes.some(({ report }) => report?.outcome === 'trial')
    const isOver = ['Paused', 'Complete'].includes(plan.status.phase) && isStill
    if (isOver || nowMs > mostHours * 3_600_000)
      return { plan, nodes, ran: ran.size, mostOnLink, hours: nowMs / 3_600_000 }
    nowMs += stepMs
    nodes = nodes.map((node) => moved(node, nowMs))
  }

  function moved(node: RolloutNode, now: number): RolloutNode {
    const { name, admitted, report } = node
    const seen = isBack(node) ? { ...node, isConnected: true } : node
    if (!seen.isConnected || admitted === undefined) return seen
    const reported = (outcome: 'trial' | 'committed' | 'rolledBack') => ({
      digest: admitted.digest,
      outcome,
      atMs: now,
    })
    if (report === undefined) {
      if (now - admitted.atMs < (downloadMs.get(name) ?? 0)) return seen
      ran.add(name)
      return { ...seen, report: reported('trial') }
    }
    if (now - report.atMs < trialMs) return seen
    if (report.outcome === 'committed' && fleet.outcome === 'goes away')
      return { ...seen, isConnected: false, lostSinceMs: now }
    if (report.outcome !== 'trial') return seen
    if (isBad(name)) return { ...seen, report: reported('rolledBack') }
    return { ...seen, sequence: admitted.sequence, report: reported('committed') }
  }

  /** Machines that were off come back over the first day. */
  function isBack({ isConnected, report }: RolloutNode): boolean {
    return !isConnected && report === undefined && draw() <= 0.012
  }

  function isBad(name: string): boolean {
    return bad.has(name) || fleet.outcome === 'rolledBack'
  }
}

function busiestLink(nodes: readonly RolloutNode[]): number {
  const links = new Map<string, number>()
  for (const { link, admitted, report } of nodes)
    if (admitted !== undefined && (report === undefined || report.outcome === 'trial'))
      links.set(link, (links.get(link) ?? 0) + 1)
  return Math.max(0, ...links.values())
}

/** Numbers from 0 to 1, the same for each seed (mulberry32). */
function draws(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const first = Math.imul(state ^ (state >>> 15), state | 1)
    const second = first ^ (first + Math.imul(first ^ (first >>> 7), first | 61))
    return ((second ^ (second >>> 14)) >>> 0) / 2 ** 32
  }
}
