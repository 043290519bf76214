/** Loop: without a controller, finds by slow probes the nodes whose endpoints are not to be used. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
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
    /** Sorted names. Empty while the controller judges. */
    readonly silentNodes: Cell<readonly string[]>
    /** The same: nodes whose IPv6 endpoints are not to be used. Empty in a fleet without IPv6. */
    readonly ipv6SilentNodes: Cell<readonly string[]>
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

  const probed = async (network: NetworkMessage): Promise<RecordsByFamily> => {
    const nodes = nodesToProbe(network, reads.serviceStates.get()?.services ?? new Map(), nodeName)
    const turn = nodesInTurn(nodes, last, mostProbes)
    last = turn.at(-1)?.name
    const [ipv4, ipv6] = await Promise.all([
      answersOf(turn.map(({ name, address }) => [name, address])),
      answersOf(turn.flatMap(({ name, ipv6: address }) => (address === undefined ? [] : [[name, address]]))),
    ])
    const byIPv6 = nodes.filter((node) => node.ipv6 !== undefined)
    return { ipv4: recorded(records.ipv4, ipv4, nodes), ipv6: recorded(records.ipv6, ipv6, byIPv6) }
  }

  /** `probes`: names with an address. */
  const answersOf = async (probes: readonly (readonly [string, string])[]) => {
    const answers = new Map<string, NodeAnswer>()
    const ask = async ([name, address]: readonly [string, string]) => {
      const answer = await needs.probe(address)
      if (answer !== undefined) answers.set(name, answer)
    }
    await Promise.all(probes.map(ask))
    return answers
  }

  const show = (family: IPFamily, silent: Cell<readonly string[]>, after: readonly string[]) => {
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
    show('IPv4', writes.silentNodes, silentNodes(records.ipv4))
    const byIPv6 = network?.ipv6 === undefined ? [] : silentByIPv6(records.ipv4, records.ipv6)
    show('IPv6', writes.ipv6SilentNodes, byIPv6)
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

type RecordsByFamily = { readonly ipv4: ProbeRecords; readonly ipv6: ProbeRecords }

const noRecords: RecordsByFamily = { ipv4: new Map(), ipv6: new Map() }

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
