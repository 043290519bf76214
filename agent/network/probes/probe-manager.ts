/** Loop: probes the addresses of other nodes before they are used, and answers their probes. */
import { probePort } from '../../../api/network/address-probe.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { type AddressProber, addressProber, type ProbePeer } from './address-prober.ts'
import { challengeAnswerer } from './challenge-answerer.ts'
import { type ProofCredentials, prover } from './node-proof.ts'
import type { PeerAddresses, ProofCheckpoint } from './peer-addresses.ts'
import { readProof } from './probe-message.ts'
import { proofSaving } from './proof-saving.ts'
import { type AddressProofs, proofsOf } from './proven-network.ts'

/** Sending never rejects: the link may be gone. */
export interface ProbeSocket {
  /** Resolves with the error that ended it. */
  readonly ended: Promise<Error>
  send(message: Buffer, to: ProbePeer): Promise<void>
  close(): Promise<void>
}

export interface ProbeHost {
  /** Rejects with the reason, as where another program has the port. */
  open(port: number, receive: (message: Buffer, from: ProbePeer) => void): Promise<ProbeSocket>
  /** The machine has this address now. Never rejects. */
  isOwn(address: string): Promise<boolean>
  /** MAC addresses of the machines of its links that have answered ARP, by address. Never rejects. */
  neighbours(): Promise<ReadonlyMap<string, string>>
  /** A text that differs when a link was away, or leads elsewhere. Never rejects. */
  links(): Promise<string>
}

export type ProbeManagerNeeds = {
  readonly nodeName: string
  readonly host: ProbeHost
  readonly credentials: () => ProofCredentials
  readonly checkpoint: ProofCheckpoint
  readonly reads: { readonly networkMessage: Reader<NetworkMessage | undefined> }
  readonly writes: { readonly addressProofs: Cell<AddressProofs> }
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface ProbeManager extends Loop {
  /** What was proven before counts; once, before routes are made. Never rejects. */
  load(): Promise<void>
}

/** The kernel's tables are read: another machine has an address, a link was away. */
const verifyMs = 5_000
/** Proofs that arrive within this time change routes and rules together. */
const togetherMs = 200
/** A port that another program has is tried again. */
const reopenMs = 30_000

export function probeManager(needs: ProbeManagerNeeds): ProbeManager {
  const { host, reads, writes, clock } = needs
  const wake = alarm(clock)
  const keys = prover(needs.credentials)
  const probes = addressProber({ ...needs, prover: keys })
  const saving = proofSaving(needs)
  const socket = openedSocket(needs, receiver(needs, probes, keys, wake.ring), wake.ring)
  let shown: { readonly records?: PeerAddresses; readonly isBlind?: boolean; readonly atMs: number } = { atMs: 0 }
  let links = ''
  let verifyAtMs = 0

  const isShown = () => shown.records === probes.records() && shown.isBlind === socket.isBlind()

  const show = () => {
    const [records, isBlind] = [probes.records(), socket.isBlind()]
    shown = { records, isBlind, atMs: clock.monotonicMs() }
    writes.addressProofs.set(proofsOf(isBlind ? allUsed(records) : records))
    saving.changed(records)
  }

  const take = (message: NetworkMessage | undefined) => {
    probes.take(message)
    show()
    wake.ring()
  }

  const verify = async (message: NetworkMessage) => {
    verifyAtMs = clock.monotonicMs() + verifyMs
    const now = await host.links()
    if (now !== links) probes.probeAgain(message)
    links = now
    probes.observe(await host.neighbours())
  }

  /** Resolves with the time to wait. */
  const pass = async (): Promise<number> => {
    const message = reads.networkMessage.get()
    if (message === undefined) {
      await socket.close()
      return longestTimerMs
    }
    await socket.open()
    if (clock.monotonicMs() >= verifyAtMs) await verify(message)
    if (probes.hasOutcomes()) probes.judge(await host.neighbours())
    const nextMs = socket.isBlind() ? verifyAtMs : probes.send(message, socket.send)
    const showAtMs = isShown() ? Number.POSITIVE_INFINITY : shown.atMs + togetherMs
    if (showAtMs <= clock.monotonicMs()) show()
    return Math.max(0, Math.min(nextMs, verifyAtMs, isShown() ? nextMs : showAtMs) - clock.monotonicMs())
  }

  return {
    name: 'address-probes',
    async load() {
      const loaded = await needs.checkpoint.load()
      probes.load(loaded)
      saving.changed(loaded)
      take(reads.networkMessage.get())
    },
    async run(signal) {
      const stop = reads.networkMessage.onChange(take)
      const saved = saving.run(signal)
      try {
        while (!signal.aborted) await wake.sleep(await pass(), signal)
      } finally {
        stop()
        await socket.close()
        await saved
      }
    },
  }
}

type Receiver = (message: Buffer, from: ProbePeer) => Promise<Buffer | undefined>

/** Resolves with the answer to send. Never rejects. */
function receiver(
  { reads, host, clock, log }: ProbeManagerNeeds,
  probes: AddressProber,
  keys: ReturnType<typeof prover>,
  wake: () => void,
): Receiver {
  const answer = challengeAnswerer({ prover: keys, isOwn: host.isOwn, clock })
  let failure = ''
  return async (message, { address }) => {
    const proof = readProof(message)
    if (proof !== undefined) {
      if (probes.answered(proof)) wake()
      return undefined
    }
    try {
      const isNode = reads.networkMessage.get()?.nodes.some((node) => node.address === address) === true
      const reply = await answer(message, address, isNode)
      if (reply === undefined) return undefined
      probes.challenged(address)
      wake()
      return reply
    } catch (error) {
      if (failure !== storyOf(error)) log.warn('Cannot prove the address of this node to others', { error })
      failure = storyOf(error)
      return undefined
    }
  }
}

/** The socket, opened when it is needed, and again after an error. */
function openedSocket({ host, clock, log }: ProbeManagerNeeds, receive: Receiver, wake: () => void) {
  let current: ProbeSocket | undefined
  let openAtMs = 0
  let problem: string | undefined
  const failed = (error: unknown) => {
    if (problem !== storyOf(error)) log.warn('Addresses of nodes are used without a proof', { error })
    problem = storyOf(error)
    openAtMs = clock.monotonicMs() + reopenMs
  }
  return {
    /** Nothing can be proven. */
    isBlind: () => problem !== undefined,
    async open() {
      if (current !== undefined || clock.monotonicMs() < openAtMs) return
      try {
        const opened: ProbeSocket = await host.open(probePort, (message, from) => {
          void receive(message, from).then((reply) => reply && opened.send(reply, from))
        })
        current = opened
        problem = undefined
        void opened.ended.then((error) => {
          if (current !== opened) return
          current = undefined
          failed(error)
          wake()
        })
      } catch (error) {
        failed(error)
      }
    },
    send: (message: Buffer, to: ProbePeer) => void current?.send(message, to),
    async close() {
      const open = current
      current = undefined
      problem = undefined
      openAtMs = 0
      await open?.close()
    },
  }
}

function allUsed(records: PeerAddresses): PeerAddresses {
  return new Map(
    [...records].map(([name, { address }]) => [name, { address, state: 'assumed', failures: 0, dueMs: 0 }]),
  )
}
