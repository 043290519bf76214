import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { type ServiceState, type ServicesMessage, serviceShards } from '../../../api/network/service-endpoints.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type NetworkCheckpoint, type NetworkMessages, networkReception } from './network-reception.ts'
import { isSameNetwork } from './received-network.ts'
import { areSameServices, type ServiceStates } from './service-states.ts'

const aNetwork = (version: number, epoch = 'e'): NetworkMessage => ({
  epoch,
  version,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [],
})

const aService = (name: string, clusterIP = '10.96.0.9'): ServiceState => ({
  namespace: 'default',
  name,
  type: 'ClusterIP',
  clusterIPs: [clusterIP],
  ports: [],
  internalTrafficPolicy: 'Cluster',
  externalTrafficPolicy: 'Cluster',
  endpoints: [],
})

const aShard = (version: number, services: readonly ServiceState[], epoch = 'e'): ServicesMessage => ({
  epoch,
  version,
  services,
})

/** A checkpoint in memory, whose writes can fail. */
function memoryCheckpoint(saved: NetworkMessages = { network: undefined, shards: new Map() }) {
  let network = saved.network
  const shards = new Map(saved.shards)
  let writes = 0
  let isBroken = false
  const write = (apply: () => void) => {
    if (isBroken) return Promise.reject(new Error('The disk is full'))
    writes += 1
    apply()
    return Promise.resolve()
  }
  const checkpoint: NetworkCheckpoint = {
    load: async () => ({ network, shards: new Map(shards) }),
    saveNetwork: (message) =>
      write(() => {
        network = message
      }),
    saveShard: (shard, message) => write(() => shards.set(shard, message)),
    clear: () =>
      write(() => {
        network = undefined
        shards.clear()
      }),
  }
  return {
    ...checkpoint,
    shards,
    network: () => network,
    writes: () => writes,
    breakDown: (broken: boolean) => {
      isBroken = broken
    },
  }
}

function reception(t: Test, checkpoint = memoryCheckpoint()) {
  const clock = fakeClock()
  const networkMessage = cell<NetworkMessage | undefined>(undefined, isSameNetwork)
  const serviceStates = cell<ServiceStates | undefined>(undefined, areSameServices)
  const networkCurrent = cell(false)
  const log = quietLog(t)
  const loop = networkReception({ writes: { networkMessage, serviceStates, networkCurrent }, checkpoint, clock, log })
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const changes: (readonly string[] | undefined)[] = []
  serviceStates.onChange((states) => void changes.push(states?.changed))
  return {
    ...loop,
    clock,
    checkpoint,
    networkMessage,
    serviceStates,
    networkCurrent,
    log,
    /** The keys that each change of the cell named. */
    takeChanges: () => changes.splice(0),
    start: () => void loop.run(stop.signal),
    async stop() {
      stop.abort()
      await clock.settle()
    },
  }
}

test('the Services of all shards are one value, which is complete with the last of them', async (t) => {
  const { services, serviceStates, takeChanges } = reception(t)
  services(0, aShard(1, [aService('a'), aService('b')]))
  t.same(takeChanges(), [['default/a', 'default/b']])
  for (let shard = 1; shard < serviceShards; shard++) {
    t.equal(serviceStates.get()?.isComplete, false)
    services(shard, aShard(1, shard === 5 ? [aService('c')] : []))
  }
  t.equal(serviceStates.get()?.isComplete, true)
  t.same([...(serviceStates.get()?.services.keys() ?? [])].sort(), ['default/a', 'default/b', 'default/c'])
})

test('a change names the Services that are new, gone or other, and keeps the objects of the others', async (t) => {
  const { services, serviceStates, takeChanges } = reception(t)
  services(0, aShard(1, [aService('a'), aService('b'), aService('c')]))
  const before = serviceStates.get()?.services
  takeChanges()
  services(0, aShard(2, [aService('a'), aService('b', '10.96.0.10'), aService('d')]))
  t.same(takeChanges(), [['default/c', 'default/b', 'default/d']])
  t.equal(serviceStates.get()?.services.get('default/a'), before?.get('default/a'))
  t.equal(before?.size, 3, 'the value before is not changed')
  services(0, aShard(1, [], 'later'))
  t.same(takeChanges(), [['default/a', 'default/b', 'default/d']])
})

test('within an epoch an older message is ignored, and a new epoch always counts', async (t) => {
  const { network, services, networkMessage, serviceStates, takeChanges } = reception(t)
  network(aNetwork(2))
  network(aNetwork(1))
  t.equal(networkMessage.get()?.version, 2)
  network(aNetwork(1, 'later'))
  t.match(networkMessage.get(), { epoch: 'later', version: 1 })
  services(3, aShard(2, [aService('a')]))
  services(3, aShard(2, []))
  services(3, aShard(1, []))
  t.equal(serviceStates.get()?.services.size, 1)
  takeChanges()
  services(3, aShard(1, [aService('a')], 'later'))
  t.same(takeChanges(), [], 'the same Services of a restarted controller do not count as a change')
})

test('after a restart everything is there before the first message', async (t) => {
  const shards = new Map(
    Array.from({ length: serviceShards }, (_, shard) => [shard, aShard(1, [aService(`s${shard}`)])]),
  )
  const { load, networkMessage, serviceStates, services } = reception(
    t,
    memoryCheckpoint({ network: aNetwork(7), shards }),
  )
  await load()
  t.equal(networkMessage.get()?.version, 7)
  t.equal(serviceStates.get()?.isComplete, true)
  t.equal(serviceStates.get()?.services.size, serviceShards)
  services(2, aShard(1, []))
  t.equal(serviceStates.get()?.services.size, serviceShards, 'the message of the checkpoint is not taken twice')
})

test('a change is saved soon, and lasting changes once a minute', async (t) => {
  const { start, network, services, clock, checkpoint } = reception(t)
  start()
  network(aNetwork(1))
  services(0, aShard(1, [aService('a')]))
  await clock.advance(5_000)
  t.equal(checkpoint.network()?.version, 1)
  t.equal(checkpoint.shards.get(0)?.services.length, 1)
  const before = checkpoint.writes()
  for (let second = 0; second < 300; second++) {
    services(0, aShard(2 + second, [aService('a', `10.96.1.${second % 250}`)]))
    await clock.advance(1_000)
  }
  const writes = checkpoint.writes() - before
  t.ok(writes >= 6 && writes <= 9, `${writes} writes in five minutes`)
  await clock.advance(120_000)
  services(0, aShard(400, []))
  await clock.advance(2_000)
  t.equal(checkpoint.shards.get(0)?.version, 400, 'the churn is over')
})

test('what could not be saved is saved later, and at the end at once', async (t) => {
  const { start, stop, services, clock, checkpoint, log } = reception(t)
  start()
  checkpoint.breakDown(true)
  services(0, aShard(1, [aService('a')]))
  await clock.advance(10_000)
  t.same(log.messages('warn'), ['The checkpoint of the network was not saved'])
  checkpoint.breakDown(false)
  await clock.advance(120_000)
  t.equal(checkpoint.shards.get(0)?.version, 1)
  services(0, aShard(2, []))
  await stop()
  t.equal(checkpoint.shards.get(0)?.version, 2)
})

test('a controller without a network empties the cells and the checkpoint, and a later one fills them again', async (t) => {
  const { start, network, services, networkOff, networkMessage, serviceStates, clock, checkpoint } = reception(t)
  start()
  networkOff()
  await clock.advance(200_000)
  t.equal(checkpoint.writes(), 0, 'there was nothing to empty')
  network(aNetwork(1))
  services(0, aShard(1, [aService('a')]))
  await clock.advance(100_000)
  networkOff()
  t.equal(networkMessage.get(), undefined)
  t.equal(serviceStates.get(), undefined)
  await clock.advance(100_000)
  t.equal(checkpoint.network(), undefined)
  t.equal(checkpoint.shards.size, 0)
  networkOff()
  services(0, aShard(1, [aService('a')]))
  t.equal(serviceStates.get()?.services.size, 1)
  await clock.advance(100_000)
  t.equal(checkpoint.shards.size, 1)
})

test('the cells are current once every message was received since the start, also those that the checkpoint had', async (t) => {
  const shards = new Map(Array.from({ length: serviceShards }, (_, shard) => [shard, aShard(1, [])]))
  const { load, network, services, networkCurrent } = reception(t, memoryCheckpoint({ network: aNetwork(7), shards }))
  await load()
  t.equal(networkCurrent.get(), false)
  network(aNetwork(7))
  for (const shard of shards.keys()) {
    t.equal(networkCurrent.get(), false)
    services(shard, aShard(1, []))
  }
  t.equal(networkCurrent.get(), true)
})

test('without a network the cells are current', async (t) => {
  const { networkOff, networkCurrent } = reception(t)
  networkOff()
  t.equal(networkCurrent.get(), true)
})
