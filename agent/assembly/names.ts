/** The names of the fleet on this node: the name server with its sockets, and the name servers of the machine behind it. */
import { randomInt } from 'node:crypto'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { machineServers } from '../adapters/kernel/host-resolver.ts'
import { nodeDnsHost } from '../adapters/network/node-dns-address.ts'
import { upstreamSockets } from '../adapters/network/upstream-sockets.ts'
import { nameServer } from '../network/names/name-server.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type NameParts = {
  readonly root: string
  readonly nodeName: string
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: Pick<AgentMachine, 'watch' | 'clock' | 'random'>
  readonly log: Log
}

/** The loop does nothing while the fleet has no network of its own. */
export function assembleNames({ root, nodeName, board, write, machine, log }: NameParts): Loop {
  const { clock, random, watch } = machine
  return nameServer({
    nodeName,
    host: nodeDnsHost(),
    sockets: upstreamSockets(),
    servers: machineServers(root, clock),
    reads: board,
    writes: write('nameProblem', 'namesTried', 'nameRules'),
    clock: watch.clockFor('name-server'),
    random,
    randomId: () => randomInt(65_536),
    log,
  })
}
