import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServicesMessage } from '../../../api/network/service-endpoints.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { withChecksum } from '../../../daemon/updates/checked-text.ts'
import { networkCheckpoint, networkCheckpointPath, obstacleFile, readSavedObstacle } from './network-checkpoint.ts'

const network: NetworkMessage = {
  epoch: 'e',
  version: 3,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: '192.168.1.0/24' }],
}
const shard: ServicesMessage = { epoch: 'e', version: 4, services: [] }

test('messages that were saved are loaded by the next agent', async (t) => {
  const folder = networkCheckpointPath(testFolder(t))
  const log = quietLog(t)
  const checkpoint = networkCheckpoint(folder, log)
  t.same(await checkpoint.load(), { network: undefined, shards: new Map() })
  await checkpoint.saveNetwork(network)
  await checkpoint.saveShard(5, shard)
  t.same(await networkCheckpoint(folder, log).load(), { network, shards: new Map([[5, shard]]) })
  t.same(log.messages('warn'), [])
  await writeFile(join(folder, 'policies.json'), '')
  await checkpoint.clear()
  t.same(await checkpoint.load(), { network: undefined, shards: new Map() })
  t.same(await readdir(folder), ['policies.json'], 'the checkpoint of the policies is not its own')
})

test('a damaged file is left out and logged, and the others are used', async (t) => {
  const folder = networkCheckpointPath(testFolder(t))
  const log = quietLog(t)
  const checkpoint = networkCheckpoint(folder, log)
  await checkpoint.saveNetwork(network)
  for (const number of [5, 6, 7]) await checkpoint.saveShard(number, shard)
  const flipped = (await readFile(join(folder, 'services-5.json'), 'utf8')).replace('"version":4', '"version":5')
  await writeFile(join(folder, 'services-5.json'), flipped)
  await writeFile(join(folder, 'services-6.json'), '')
  await writeFile(join(folder, 'services-7.json.99.new'), 'half')
  t.same(await checkpoint.load(), { network, shards: new Map([[7, shard]]) })
  t.equal(log.messages('warn').length, 2)
  t.same(
    (await readdir(folder)).filter((name) => name.endsWith('.new')),
    [],
  )
})

test('why a node has no part in the network is kept, until it has one', async (t) => {
  const folder = networkCheckpointPath(testFolder(t))
  const log = quietLog(t)
  const file = obstacleFile(folder, log)
  t.equal(await file.load(), undefined)
  await file.save(undefined)
  const obstacle = { reason: 'OtherAgent', found: 'Another agent', remedy: 'Stop it' } as const
  await file.save(obstacle)
  t.same(await file.load(), obstacle)
  t.same(await readSavedObstacle(folder), obstacle)
  const later = { ...obstacle, reason: 'OfALaterAgent' }
  for (const damage of ['{', withChecksum(later)]) {
    await writeFile(join(folder, 'obstacle.json'), damage)
    t.match(await file.load(), { reason: 'ObstacleUnreadable' }, 'there is one, whatever it is')
    await t.rejects(readSavedObstacle(folder))
  }
  t.same(new Set(log.messages('warn')), new Set(['The saved obstacle to the network of pods cannot be used']))
  await file.save(undefined)
  t.equal(await readSavedObstacle(folder), undefined)
})
