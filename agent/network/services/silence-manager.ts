/** Loop: without a controller, finds by slow probes the nodes whose endpoints are not to be used. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { type ByFamily, byFamily, type IPFamily, ipFamilies } from '../../../api/text/ip-address.ts'
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
  type ProbedNode,
  type ProbeRecords,
  recordAnswers,
  silentByIPv6,
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
    /** Sorted names: nodes whose endpoints of the family are not to be used. Empty while the controller judges. */
    readonly silentNodes: ByFamily<Cell<readonly string[]>>
  }
  readonly clock: Clock
  readonly log: Log
}

const roundMs = 20_000
/** At once, each by both families: a fleet with more nodes is probed in turns. */
const mostProbes = 32

export function silenceManager(needs: SilenceManagerNeeds): Loop {
  const { nodeName, reads, writes, clock, log } = needs
  const changed = alarm(clock)
  let attached: Attachment = { isConnected: false, sinceMs: clock.monotonicMs(), isAlone: false }
  let records = noRecords
  let last: string | undefined

  const probed = async (network: NetworkMessage): Promise<ByFamily<ProbeRecords>> => {
    const nodes = nodesToProbe(network, reads.serviceStates.get()?.services ?? new Map(), nodeName)
    const turn = nodesInTurn(nodes, last, mostProbes)
    last = turn.at(-1)?.name
    const [IPv4, IPv6] = await Promise.all(ipFamilies.map((family) => answersOf(turn, family)))
    const answers = { IPv4, IPv6 }
    return byFamily((family) => {
      const probed = nodes.filter((node) => addressOf(node, family) !== undefined)
      return recorded(records[family], answers[family] ?? new Map(), probed)
    })
  }

  const answersOf = async (probed: readonly ProbedNode[], family: IPFamily) => {
    const answers = new Map<string, NodeAnswer>()
    const ask = async (node: ProbedNode) => {
      const address = addressOf(node, family)
      const answer = address === undefined ? undefined : await needs.probe(address)
      if (answer !== undefined) answers.set(node.name, answer)
    }
    await Promise.all(probed.map(ask))
    return answers
  }

  const show = (family: IPFamily, after: readonly string[]) => {
    const silent = writes.silentNodes[family]
    const before = silent.get()
    const [gone, back] = [without(after, before), without(before, after)]
    if (gone.length > 0) log.warn('Endpoints of nodes that do not answer are left out', { nodes: gone, family })
    if (back.length > 0) log.info('Endpoints of nodes are used again', { nodes: back, family })
    silent.set(after)
  }

  const pass = async () => {
    const network = reads.networkMessage.get()
    attached = attachment(attached, needs.isConnected(), clock.monotonicMs())
    records = attached.isAlone && network !== undefined ? await probed(network) : noRecords
    show('IPv4', silentNodes(records.IPv4))
    show('IPv6', network?.ipv6 === undefined ? [] : silentByIPv6(records.IPv4, records.IPv6))
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

const noRecords: ByFamily<ProbeRecords> = { IPv4: new Map(), IPv6: new Map() }

function addressOf({ address, ipv6 }: ProbedNode, family: IPFamily): string | undefined {
  return family === 'IPv4' ? address : ipv6
}

/** Keeps the records of these nodes only: a node without an endpoint is no longer probed. */
function recorded(
  records: ProbeRecords,
  answers: ReadonlyMap<string, NodeAnswer>,
  nodes: readonly ProbedNode[],
): ProbeRecords {
  const names = new Set(nodes.map(({ name }) => name))
  return new Map([...recordAnswers(records, answers)].filter(([name]) => names.has(name)))
}

function without(names: readonly string[], others: readonly string[]): readonly string[] {
  return names.filter((name) => !others.includes(name))
}
