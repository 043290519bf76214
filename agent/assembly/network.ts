/** The network of the fleet on this node: the reception of its messages, and the parts that act on them. */
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { networkCheckpoint, networkCheckpointPath } from '../adapters/disk/network-checkpoint.ts'
import { networkReception } from '../network/messages/network-reception.ts'
import type { ControlPlaneListener } from '../node/connection/control-plane.ts'
import type { AgentBoard } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type NetworkParts = {
  readonly dataDir: string
  readonly board: AgentBoard
  readonly machine: Pick<AgentMachine, 'watch'>
  readonly log: Log
}

export type AssembledNetwork = {
  readonly listener: Pick<ControlPlaneListener, 'network' | 'services' | 'networkOff'>
  readonly loops: readonly Loop[]
}

/** Resolves when the cells have what the checkpoint has: before pods start. */
export async function assembleNetwork({ dataDir, board, machine, log }: NetworkParts): Promise<AssembledNetwork> {
  const reception = networkReception({
    writes: board,
    checkpoint: networkCheckpoint(networkCheckpointPath(dataDir), log),
    clock: machine.watch.clockFor('network-reception'),
    log,
  })
  await reception.load()
  const { network, services, networkOff } = reception
  return { listener: { network, services, networkOff }, loops: [reception] }
}
