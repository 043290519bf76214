import { test } from 'tap'
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { Cell } from '../../daemon/cell.ts'
import { agentBoard } from './board.ts'
import { networkDecided } from './pod-network-link.ts'

const message: NetworkMessage = {
  ...{
    epoch: 'e',
    version: 1,
    clusterCIDR: '10.244.0.0/16',
    serviceCIDR: '10.96.0.0/12',
    clusterDomain: 'cluster.local',
  },
  nodes: [],
}

test('a pod waits until its node is on the network that was received, or something is in the way', async (t) => {
  await networkDecided(agentBoard())
  const obstacle = { reason: 'OtherAgent', found: 'Another agent', remedy: 'Stop it' } as const
  for (const decide of [
    ({ networkMessage }: ReturnType<typeof agentBoard>) => networkMessage.set(message),
    ({ networkObstacle }: ReturnType<typeof agentBoard>) => networkObstacle.set(obstacle),
  ]) {
    const board = agentBoard()
    board.fleetNetwork.set(message)
    let isDecided = false
    const waiting = networkDecided(board).then(() => {
      isDecided = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    t.equal(isDecided, false)
    decide(board)
    await waiting
    await networkDecided(board)
  }
})

/** A cell that counts its listeners. */
function counted<T>(own: Cell<T>) {
  let listeners = 0
  const onChange: Cell<T>['onChange'] = (listener) => {
    const stop = own.onChange(listener)
    listeners++
    return () => {
      listeners--
      stop()
    }
  }
  return { cell: { ...own, onChange }, listeners: () => listeners }
}

test('a wait for the decision leaves no listener behind, however many pods start', async (t) => {
  const { fleetNetwork, ...board } = agentBoard()
  const [networkMessage, networkObstacle] = [counted(board.networkMessage), counted(board.networkObstacle)]
  const cells = { fleetNetwork, networkMessage: networkMessage.cell, networkObstacle: networkObstacle.cell }
  fleetNetwork.set(message)
  const waiting = networkDecided(cells)
  await new Promise((resolve) => setImmediate(resolve))
  t.ok(networkMessage.listeners() > 0)
  networkMessage.cell.set(message)
  await waiting
  for (let pods = 0; pods < 10; pods++) await networkDecided(cells)
  t.same([networkMessage.listeners(), networkObstacle.listeners()], [0, 0])
})
