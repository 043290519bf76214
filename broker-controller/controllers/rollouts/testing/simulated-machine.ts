/** A machine with an agent that updates itself, in simulated time: downloads and trials take time, and the machine is off now and then. */
import {
  type AgentUpdateReport,
  agentUpdateAnnotation,
  updateReportOf,
  wantedReleaseOf,
} from '../../../../api/node/agent-update.ts'
import { goodbyeReasonAnnotation } from '../../../../api/node/lifecycle-annotations.ts'
import type { Node, NodeStatus } from '../../../../api/node.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'

export type MachineTraits = {
  readonly name: string
  readonly link: string
  readonly zone: string
  readonly address: string
  /** It takes back whatever it tries. */
  readonly isBad: boolean
  /** What the release does to it; undefined: it runs well. */
  readonly fault: 'takenBack' | 'goesAway' | undefined
  readonly downloadMs: number
  /** How long a version runs there until it is taken back. */
  readonly failsAfterMs: number
  /** The part of all time for which it is off. */
  readonly offPart: number
}

export type MachineWorld = {
  readonly nowMs: () => number
  /** Calls `act` at this time. */
  readonly at: (ms: number, act: () => void) => void
  readonly random: () => number
  /** The Node of the machine is another one. */
  readonly changed: () => void
}

export interface SimulatedMachine {
  readonly node: Node
  /** It ran the release of the rollout at any time. */
  readonly hasTried: boolean
  /** What the controller wrote on its Node. The machine receives that at once, or when it is back. */
  write(node: Node): void
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** As `bramble-agent-trial.service` judges: ten minutes, and up to a minute until it looks again. */
const trialMs = 10 * minuteMs
const lookMs = minuteMs
/** Mean time for which a machine is on without interruption. */
const onMs = 120 * hourMs
/** The controller sets Ready to Unknown so long after the last heartbeat. */
const unknownAfterMs = minuteMs
/** A release that ends the network of its machine does so at any time in this period after the commit. */
const goesAwayMs = 30 * minuteMs
const mostAttempts = 3

export function simulatedMachine(
  traits: MachineTraits,
  before: { readonly version: string; readonly sequence: number },
  world: MachineWorld,
): SimulatedMachine {
  const { name, link, zone, address, offPart } = traits
  const labels = { 'bramble.dev/link': link, 'topology.kubernetes.io/zone': zone }
  let node: Node = annotated(aNode({ name, labels, address }), agentUpdateAnnotation, JSON.stringify(before))
  /** Another number ends what the machine was about to do. */
  let turn = 0
  let [isOn, hasTried, attempts] = [true, false, 0]
  /** Digest of the release that it begins, tries or has. */
  let begun: string | undefined

  const set = (next: Node) => {
    node = next
    world.changed()
  }
  const report = (made: AgentUpdateReport) => set(annotated(node, agentUpdateAnnotation, JSON.stringify(made)))
  const later = (ms: number, act: () => void) => {
    const own = ++turn
    world.at(world.nowMs() + ms, () => {
      if (own === turn) act()
    })
  }

  const follow = () => {
    const wanted = wantedReleaseOf(node)
    if (!isOn || wanted?.digest === begun) return
    const running = updateReportOf(node)?.release
    if (running?.outcome === 'trial') return
    begun = wanted?.digest
    turn += 1
    // A release that it took back is tried again only when an operator forces it.
    const isRejected = running?.outcome === 'rolledBack' && running.sequence === wanted?.sequence
    if (wanted === undefined || isRejected || (updateReportOf(node)?.sequence ?? 0) >= wanted.sequence) return
    attempts = 0
    later(traits.downloadMs, tryIt)
  }

  const tryIt = () => {
    const wanted = wantedReleaseOf(node)
    if (wanted === undefined) return
    hasTried = true
    attempts += 1
    const { version, sequence } = wanted
    const end = (outcome: 'committed' | 'rolledBack') => {
      const committed = outcome === 'committed' ? { version, sequence } : before
      report({ ...committed, release: { version, sequence, outcome } })
      if (outcome === 'committed' && traits.fault === 'goesAway')
        later(world.random() * goesAwayMs, () => leave(false, Number.POSITIVE_INFINITY))
    }
    report({ ...before, release: { version, sequence, outcome: 'trial' } })
    if (traits.isBad || traits.fault === 'takenBack' || attempts > mostAttempts)
      later(traits.failsAfterMs, () => end('rolledBack'))
    else later(trialMs + world.random() * lookMs, () => end('committed'))
  }

  const ready = (status: 'True' | 'Unknown'): NodeStatus => {
    const lastTransitionTime = rfc3339(world.nowMs())
    return { ...node.status, conditions: [{ type: 'Ready', status, lastTransitionTime }] }
  }
  const leave = (isAnnounced: boolean, forMs: number) => {
    isOn = false
    turn += 1
    if (isAnnounced) set({ ...annotated(node, goodbyeReasonAnnotation, 'power-off'), status: ready('Unknown') })
    else
      world.at(world.nowMs() + unknownAfterMs, () => {
        if (!isOn) set({ ...node, status: ready('Unknown') })
      })
    if (forMs !== Number.POSITIVE_INFINITY) world.at(world.nowMs() + forMs, comeBack)
  }
  const comeBack = () => {
    isOn = true
    const { [goodbyeReasonAnnotation]: _, ...annotations } = node.metadata.annotations ?? {}
    set({ ...node, metadata: { ...node.metadata, annotations }, status: ready('True') })
    // A trial begins again; so does a download, which goes on where it ended.
    if (updateReportOf(node)?.release?.outcome === 'trial') later(minuteMs, tryIt)
    else {
      begun = undefined
      follow()
    }
    leaveSometime()
  }
  const awayMs = () => exponential(world.random(), (onMs * offPart) / (1 - offPart))
  const leaveSometime = () => {
    if (offPart <= 0) return
    const atMs = world.nowMs() + exponential(world.random(), onMs)
    world.at(atMs, () => {
      if (isOn) leave(world.random() < 0.5, awayMs())
    })
  }

  if (world.random() < offPart) leave(true, awayMs())
  else leaveSometime()
  return {
    get node() {
      return node
    },
    get hasTried() {
      return hasTried
    },
    write(next) {
      set(next)
      follow()
    },
  }
}

function annotated(node: Node, name: string, value: string): Node {
  return { ...node, metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [name]: value } } }
}

/** `part`: from 0 to 1, evenly distributed. */
function exponential(part: number, mean: number): number {
  return -Math.log(1 - part) * mean
}
