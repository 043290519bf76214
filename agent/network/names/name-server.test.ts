import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { noServices, type ServiceStates, withShard } from '../messages/service-states.ts'
import type { RuleSet } from '../rule-set.ts'
import { type Asked, dnsQuestion, type RecordType, seenAnswer } from '../testing/dns-client.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { upstreamAnswer } from '../testing/upstream.ts'
import type { Answerer } from './answerer.ts'
import { nameServer } from './name-server.ts'
import { questionLimits } from './source-limit.ts'

const network: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: 's' }],
}

function world(t: Test, ...expected: readonly string[]) {
  const clock = fakeClock()
  const networkMessage = cell<NetworkMessage | undefined>(undefined)
  const serviceStates = cell<ServiceStates | undefined>(undefined)
  const nameProblem = cell<string | undefined>(undefined)
  const namesTried = cell(false)
  const nameRules = cell<RuleSet | undefined>(undefined)
  let open: { readonly answerer: Answerer; readonly fail: (error: Error) => void } | undefined
  let [opened, released, refusals, isThere] = [0, 0, 0, true]
  const loop = nameServer({
    nodeName: 'pi-1',
    host: {
      async open(answerer) {
        if (refusals > 0) {
          refusals -= 1
          throw new Error('The port is taken')
        }
        opened += 1
        isThere = true
        let fail: (error: Error) => void = () => {}
        const ended = new Promise<Error>((resolve) => {
          fail = resolve
        })
        open = { answerer, fail }
        return {
          ended,
          async close() {
            open = undefined
          },
        }
      },
      hasAddress: () => isThere,
      async release() {
        released += 1
      },
    },
    sockets: {
      askUdp: async (_, message, accepts) => {
        const accepted = accepts(upstreamAnswer(message, { addresses: ['192.0.2.7'] }))
        if (accepted === undefined) throw new Error('not accepted')
        return accepted
      },
      askTcp: () => Promise.reject(new Error('closed')),
    },
    servers: async () => ['192.0.2.53'],
    reads: { networkMessage, serviceStates },
    writes: { nameProblem, namesTried, nameRules },
    clock,
    random: () => 0.99,
    randomId: () => 1,
    log: quietLog(t, ...expected),
  })
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  return {
    clock,
    networkMessage,
    serviceStates,
    nameProblem,
    namesTried,
    nameRules,
    start: async () => {
      void loop.run(stop.signal)
      await clock.settle()
    },
    stop: async () => {
      stop.abort()
      await clock.settle()
    },
    counts: () => ({ opened, released, isOpen: open !== undefined }),
    refuse: (times: number) => {
      refusals = times
    },
    fail: () => open?.fail(new Error('The socket failed')),
    loseAddress: () => {
      isThere = false
    },
    /** The answer to a pod of the node, or to `source`. */
    async ask(
      name: string,
      type: RecordType = 'A',
      { source = '10.244.1.9', ...asked }: Asked & { source?: string } = {},
    ) {
      const answer = await open?.answerer.answer(dnsQuestion(name, type, asked), source, 'udp')
      return answer && seenAnswer(answer)
    },
  }
}

const shard = (...addresses: readonly string[]) =>
  withShard(
    noServices,
    [],
    [aService({ clusterIPs: [], addresses: addresses.map((ip) => endpointOn('pi-1', ip)) })],
    true,
  )

test('names are answered while the fleet has a network', async (t) => {
  const { start, networkMessage, serviceStates, ask, counts } = world(t)
  await start()
  t.match(counts(), { isOpen: false, released: 0 })
  networkMessage.set(network)
  serviceStates.set(shard('10.244.1.5', '10.244.2.5'))
  await new Promise(setImmediate)
  const seen = await ask('web.shop.svc.cluster.local')
  t.match(seen, { code: 0, isAuthoritative: true })
  t.same(seen?.answers.map(({ data }) => data).sort(), ['10.244.1.5', '10.244.2.5'])
  t.equal(seen?.answers[0]?.data, '10.244.2.5', 'another one is the first in each answer')
  serviceStates.set(shard('10.244.3.5'))
  t.match(await ask('web.shop.svc.cluster.local'), { answers: [{ data: '10.244.3.5' }] })
  networkMessage.set({ ...network, clusterDomain: 'fleet.example' })
  t.match(await ask('web.shop.svc.fleet.example'), { answers: [{ data: '10.244.3.5' }] })
  networkMessage.set(undefined)
  await new Promise(setImmediate)
  t.match(counts(), { isOpen: false, released: 1 })
})

test('other names are forwarded, and an alias comes with the addresses of its target', async (t) => {
  const { start, networkMessage, serviceStates, ask } = world(t)
  networkMessage.set(network)
  serviceStates.set(
    withShard(noServices, [], [aService({ type: 'ExternalName', clusterIPs: [], externalName: 'example.org' })], true),
  )
  await start()
  t.match(await ask('example.org'), { isAuthoritative: false, answers: [{ data: '192.0.2.7' }] })
  t.match((await ask('web.shop.svc.cluster.local'))?.answers, [
    { name: 'web.shop.svc.cluster.local', type: 'CNAME', data: 'example.org' },
    { name: 'example.org', type: 'A', data: '192.0.2.7' },
  ])
  t.match(await ask('web.shop.svc.cluster.local', 'CNAME'), { answers: { length: 1 } })
})

test('pods of the node and the machine itself get answers, and others nothing', async (t) => {
  const { start, networkMessage, ask } = world(t)
  networkMessage.set(network)
  await start()
  for (const source of ['10.244.1.1', '169.254.20.10', '127.0.0.1', '192.168.1.5']) {
    t.ok(await ask('pi-1.node.cluster.local', 'A', { source }), source)
  }
  for (const source of ['192.168.1.7', '10.244.2.1', '10.96.0.1', '8.8.8.8', '172.17.0.2', '']) {
    t.equal(await ask('pi-1.node.cluster.local', 'A', { source }), undefined, source)
  }
  networkMessage.set({ ...network, nodes: [] })
  t.ok(await ask('cluster.local', 'SOA', { source: '10.244.1.1' }), 'a node that the message lacks still answers')
  t.equal(await ask('cluster.local', 'SOA', { source: '192.168.1.7' }), undefined)
})

test('a client that floods the server gets the answers to a part of its questions', async (t) => {
  const { start, networkMessage, ask, clock } = world(t)
  networkMessage.set(network)
  await start()
  let answered = 0
  const flood = async () => {
    if (await ask('pi-1.node.cluster.local')) answered += 1
  }
  for (let count = 0; count < questionLimits.atOnce + 500; count++) await flood()
  t.equal(answered, questionLimits.atOnce)
  t.ok(await ask('pi-1.node.cluster.local', 'A', { source: '10.244.1.8' }), 'another one is not affected')
  answered = 0
  for (let ms = 0; ms < 500; ms++) {
    for (let count = 0; count < 5; count++) await flood()
    await clock.advance(1)
  }
  t.ok(answered >= 499 && answered <= 501, `${answered} in half a second`)
})

test('a client that asks for the names of many endpoints gets as many records a second, in fewer answers', async (t) => {
  const { start, networkMessage, serviceStates, ask } = world(t)
  networkMessage.set(network)
  serviceStates.set(shard(...Array.from({ length: 250 }, (_, index) => `10.244.2.${index + 1}`)))
  await start()
  let answered = 0
  for (let count = 0; count < questionLimits.atOnce; count++) {
    if (await ask('web.shop.svc.cluster.local')) answered += 1
  }
  t.equal(answered, questionLimits.atOnce / 8)
  t.ok(await ask('pi-1.node.cluster.local', 'A', { source: '10.244.1.8' }), 'another one is not affected')
})

test('the server opens again after a failure, and after its address was removed', async (t) => {
  const { start, networkMessage, clock, counts, refuse, fail, loseAddress, nameProblem, namesTried } = world(
    t,
    'Names of the fleet are not answered',
  )
  networkMessage.set(network)
  refuse(1)
  t.equal(namesTried.get(), false)
  await start()
  t.match(nameProblem.get(), /The port is taken/)
  t.equal(namesTried.get(), true, 'no pod waits for a server that cannot open')
  await clock.advance(1_000)
  t.match(counts(), { opened: 1, isOpen: true })
  t.equal(nameProblem.get(), undefined)
  fail()
  await clock.advance(2_000)
  t.match(counts(), { opened: 2, isOpen: true })
  loseAddress()
  await clock.advance(12_000)
  t.match(counts(), { opened: 3, isOpen: true, released: 0 })
})

test('the rules of its address are there with the network, and let in pods of the node', async (t) => {
  const { start, networkMessage, nameRules } = world(t)
  await start()
  t.equal(nameRules.get(), undefined)
  networkMessage.set(network)
  t.match(nameRules.get()?.chains.get('names-clients')?.rules[0], 'ip saddr != 10.244.1.0/24 drop')
  networkMessage.set({ ...network, nodes: [] })
  t.match(nameRules.get()?.chains.get('names-clients')?.rules[0], 'ip saddr != 10.244.0.0/16 drop')
  networkMessage.set(undefined)
  t.equal(nameRules.get(), undefined)
})

test('an agent that ends answers until its process is gone', async (t) => {
  const { start, stop, networkMessage, ask, counts } = world(t)
  networkMessage.set(network)
  await start()
  await stop()
  t.match(counts(), { isOpen: true, released: 0 })
  t.match(await ask('pi-1.node.cluster.local'), { code: 0, answers: [{ data: '192.168.1.5' }] })
})
