/** The probes of this node: which are under way, what was answered, and what that makes of the addresses. */
import { randomBytes } from 'node:crypto'
import { probePort } from '../../../api/network/address-probe.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Prover } from './node-proof.ts'
import {
  afterChallenge,
  afterNeighbours,
  afterOutcome,
  afterSending,
  dueProbes,
  type PeerAddress,
  type PeerAddresses,
  type ProbeOutcome,
  peersToProve,
  probedAgain,
  recordsFor,
} from './peer-addresses.ts'
import { type Challenge, nonceBytes, type Proof, writeChallenge } from './probe-message.ts'

/** Source or destination of a datagram. */
export type ProbePeer = { readonly address: string; readonly port: number }

export interface AddressProber {
  /** A value of its own after each change. */
  records(): PeerAddresses
  load(records: PeerAddresses): void
  /** The message of the fleet, which has changed. */
  take(message: NetworkMessage | undefined): void
  /** This machine's links have changed: all addresses are probed again, spread. */
  probeAgain(message: NetworkMessage): void
  /** MAC addresses of the links, by address. */
  observe(neighbours: ReadonlyMap<string, string>): void
  /** A node has sent a challenge from this address. */
  challenged(address: string): void
  /** False: it belongs to no probe that is under way. */
  answered(proof: Proof): boolean
  /** Probes were answered, or have not been in time. */
  hasOutcomes(): boolean
  /** Judges those; `neighbours`: as of `observe`, read after the answers. */
  judge(neighbours: ReadonlyMap<string, string>): void
  /** Sends the challenges that are due. Returns when the next is, or an answer is late; Infinity: none. */
  send(message: NetworkMessage, to: (challenge: Buffer, peer: ProbePeer) => void): number
}

export type AddressProberNeeds = {
  readonly nodeName: string
  readonly prover: Pick<Prover, 'proven'>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** A node of the same link answers within milliseconds. */
const answerMs = 1_000
/** Probes at once: nodes that do not answer get at most this many challenges per `answerMs`. */
const mostUnderWay = 32

type ProbeUnderWay = { readonly name: string; readonly challenge: Challenge; readonly endMs: number }
type SeenOutcome = { readonly name: string; readonly address: string; readonly outcome: ProbeOutcome }

export function addressProber({ nodeName, prover, clock, random, log }: AddressProberNeeds): AddressProber {
  let records: PeerAddresses = new Map()
  /** By the nonce. */
  const underWay = new Map<string, ProbeUnderWay>()
  let seen: SeenOutcome[] = []
  const logChange = changeLog({ clock, log })
  const now = () => ({ nowMs: clock.monotonicMs(), random })
  const late = () => [...underWay].filter(([, { endMs }]) => endMs <= clock.monotonicMs())

  return {
    records: () => records,
    load(loaded) {
      records = loaded
    },
    take(message) {
      records = recordsFor(records, message === undefined ? [] : peersToProve(message, nodeName), now())
    },
    probeAgain(message) {
      const probed = peersToProve(message, nodeName).filter((one) => one.probePort !== undefined)
      records = probedAgain(records, new Set(probed.map(({ name }) => name)), now())
    },
    observe(neighbours) {
      records = afterNeighbours(records, neighbours, clock.monotonicMs())
    },
    challenged(address) {
      records = afterChallenge(records, address, clock.monotonicMs())
    },
    // From whichever address: a node with several on a link sends from one of them, and signs the one that it was asked for.
    answered(proof) {
      const nonce = proof.nonce.toString('hex')
      const probe = underWay.get(nonce)
      if (probe === undefined) return false
      underWay.delete(nonce)
      const { name, challenge } = probe
      seen.push({ name, address: challenge.address, outcome: outcomeOf(name, prover.proven(challenge, proof)) })
      return true
    },
    hasOutcomes: () => seen.length > 0 || late().length > 0,
    judge(neighbours) {
      const lost = late()
      for (const [nonce] of lost) underWay.delete(nonce)
      const unanswered = lost.map(([, { name, challenge }]): SeenOutcome => {
        return { name, address: challenge.address, outcome: { why: 'no answer' } }
      })
      const next = new Map(records)
      for (const { name, address, outcome } of [...seen, ...unanswered]) {
        const before = next.get(name)
        if (before?.address !== address) continue
        const after = afterOutcome(before, outcome, { ...now(), mac: neighbours.get(address) })
        next.set(name, after)
        logChange(name, before, after)
      }
      seen = []
      records = next
    },
    send(message, to) {
      const nowMs = clock.monotonicMs()
      const due = dueProbes(records, new Set([...underWay.values()].map(({ name }) => name)), nowMs)
      const ports = new Map(message.nodes.map(({ name, probePort: port }) => [name, port]))
      const next = due.now.slice(0, mostUnderWay - underWay.size)
      records = afterSending(records, new Set(next))
      for (const name of next) {
        const { address = '' } = records.get(name) ?? {}
        const challenge = { nonce: randomBytes(nonceBytes), address }
        underWay.set(challenge.nonce.toString('hex'), { name, challenge, endMs: nowMs + answerMs })
        to(writeChallenge(challenge), { address, port: ports.get(name) ?? probePort })
      }
      return Math.min(due.nextMs, ...[...underWay.values()].map(({ endMs }) => endMs))
    },
  }
}

function outcomeOf(name: string, provenBy: string | undefined): ProbeOutcome {
  if (provenBy === undefined) return { why: 'no certificate' }
  return provenBy === name ? { why: 'proven' } : { why: 'other node', node: provenBy }
}

/** Interval of log lines about one node: a machine that has its address chooses how it answers, and so the reason. */
const reasonMs = 60_000

function changeLog({ clock, log }: Pick<AddressProberNeeds, 'clock' | 'log'>) {
  /** By the name of the node: the last reason that was logged, until it is proven. */
  const logged = new Map<string, { readonly why: string; readonly atMs: number }>()
  return (node: string, before: PeerAddress, { address, state, because }: PeerAddress): void => {
    const [last, nowMs] = [logged.get(node), clock.monotonicMs()]
    if (because !== undefined && because.why !== last?.why && (last === undefined || nowMs - last.atMs >= reasonMs)) {
      logged.set(node, { why: because.why, atMs: nowMs })
      log.warn('The address of a node is not proven: its pods have no route', { node, address, because: because.why })
    }
    if (state !== 'proven') return
    logged.delete(node)
    if (before.because !== undefined) log.info('The address of a node is proven', { node, address })
  }
}
