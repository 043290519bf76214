/** Loop: without a controller, finds by slow probes the nodes whose endpoints are not to be used. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { unlessAborted } from '../../../daemon/aborted.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import {
  type Attachment,
  attachment,
  type NodeAnswer,
  nodesInTurn,
  nodesToProbe,
  type ProbeRecords,
  recordAnswers,
  silentNodes,
} from './silent-nodes.ts'

/** Sends some packets to an address; undefined: the machine itself could not send. Ends within seconds, and never rejects. */
export type NodeProbe = (address: string) => Promise<NodeAnswer | undefined>

export type SilenceManagerNeeds = {
  readonly nodeName: string
  readonly probe: NodeProbe
  readonly isConnected: () => boolean
  readonly reads: {
    readonly networkMessage: Reader<NetworkMessage | undefined>
    readonly serviceStates: Reader<ServiceStates | undefined>
  }
  readonly writes: {
    /** Sorted names. Empty while the controller judges. */
    readonly silentNodes: Cell<readonly string[]>
  }
  readonly clock: Clock
  readonly log: Log
}

const roundMs = 20_000
/** At once: a fleet with more nodes is probed in turns. */
const mostProbes = 32

export function silenceManager(needs: SilenceManagerNeeds): Loop {
  const { nodeName, reads, writes, clock, log } = needs
  const changed = alarm(clock)
  let attached: Attachment = { isConnected: false, sinceMs: clock.monotonicMs(), isAlone: false }
  let records: ProbeRecords = new Map()
  let last: string | undefined

  const probed = async (network: NetworkMessage): Promise<ProbeRecords> => {
    const nodes = nodesToProbe(network, reads.serviceStates.get()?.services ?? new Map(), nodeName)
    const names = new Set(nodes.map(({ name }) => name))
    const turn = nodesInTurn(nodes, last, mostProbes)
    last = turn.at(-1)?.name
    const answers = new Map<string, NodeAnswer>()
    const ask = async ({ name, address }: (typeof turn)[number]) => {
      const answer = await needs.probe(address)
      if (answer !== undefined) answers.set(name, answer)
    }
    await Promise.all(turn.map(ask))
    return new Map([...recordAnswers(records, answers)].filter(([name]) => names.has(name)))
  }

  const pass = async () => {
    const network = reads.networkMessage.get()
    attached = attachment(attached, needs.isConnected(), clock.monotonicMs())
    records = attached.isAlone && network !== undefined ? await probed(network) : new Map()
    const [before, after] = [writes.silentNodes.get(), silentNodes(records)]
    const [gone, back] = [without(after, before), without(before, after)]
    if (gone.length > 0) log.warn('Endpoints of nodes that do not answer are left out', { nodes: gone })
    if (back.length > 0) log.info('Endpoints of nodes are used again', { nodes: back })
    writes.silentNodes.set(after)
  }

  return {
    name: 'silent-nodes',
    async run(signal) {
      let isOn = false
      const stop = reads.networkMessage.onChange((message) => {
        if (message === undefined || !isOn) changed.ring()
      })
      try {
        while (!signal.aborted) {
          // A probe ends within seconds, for which an agent that ends need not wait.
          await unlessAborted(pass(), signal)
          isOn = reads.networkMessage.get() !== undefined
          await changed.sleep(isOn ? roundMs : longestTimerMs, signal)
        }
      } finally {
        stop()
      }
    },
  }
}

function without(names: readonly string[], others: readonly string[]): readonly string[] {
  return names.filter((name) => !others.includes(name))
}
