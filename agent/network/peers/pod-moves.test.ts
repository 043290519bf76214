import { test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { moveDelayMs } from './pod-moves.ts'

const fleet = (count: number): NetworkMessage => ({
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.0.0.0/8',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: Array.from({ length: count }, (_, index) => ({
    name: `pi-${index}`,
    podCIDR: '10.0.0.0/24',
    address: '192.168.1.1',
    segment: 'lan',
  })),
})

test('the nodes of a fleet move their pods one after the other', async (t) => {
  t.same(
    ['pi-0', 'pi-1', 'pi-2'].map((name) => moveDelayMs(fleet(3), name)),
    [0, 20_000, 40_000],
  )
  t.equal(moveDelayMs(fleet(3), 'another'), 0)
})

test('a large fleet is done within half an hour', async (t) => {
  t.equal(moveDelayMs(fleet(90), 'pi-89'), 89 * 20_000)
  t.equal(moveDelayMs(fleet(1000), 'pi-999'), 999 * 1_800)
})
