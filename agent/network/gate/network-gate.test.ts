import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { parseCidr } from '../../../api/text/cidr.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { isSameNetwork } from '../messages/received-network.ts'
import type { MachineRoute } from '../peers/home-networks.ts'
import { networkGate } from './network-gate.ts'
import { type NetworkObstacle, type ToolProblem, unreadableObstacle } from './network-obstacle.ts'

const message = (version = 1): NetworkMessage => ({
  ...{ epoch: 'e', version, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'cluster.local' },
  nodes: [{ name: `pi-${version}`, podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan' }],
})
const home = parseCidr('10.100.0.0/24')
const overlapping: readonly MachineRoute[] = home === undefined ? [] : [{ interface: 'wlan0', range: home }]

/** `checkpoint`: what an earlier agent received; `obstacle`: why it had no part in it. */
function world(t: Test, { checkpoint, obstacle }: { checkpoint?: NetworkMessage; obstacle?: NetworkObstacle } = {}) {
  const machine = {
    otherAgent: undefined as number | undefined,
    tools: undefined as ToolProblem | undefined,
    routes: [] as readonly MachineRoute[],
    saved: obstacle,
    isDiskFull: false,
    looks: 0,
  }
  const fleetNetwork = cell<NetworkMessage | undefined>(checkpoint, isSameNetwork)
  const fleetNetworkCurrent = cell(false)
  const runtime = cell<{ readonly info?: { readonly firewallBackend?: string } }>({})
  const networkMessage = cell<NetworkMessage | undefined>(undefined, isSameNetwork)
  const networkCurrent = cell(false)
  const networkObstacle = cell<NetworkObstacle | undefined>(undefined)
  const clock = fakeClock()
  const log = quietLog(t)
  const gate = networkGate({
    machine: {
      claim: async () => machine.otherAgent,
      async toolProblem() {
        machine.looks += 1
        return machine.tools
      },
      routes: async () => machine.routes,
    },
    saved: {
      load: async () => machine.saved,
      save: async (next) => {
        if (machine.isDiskFull) throw new Error('ENOSPC')
        machine.saved = next
      },
    },
    reads: { fleetNetwork, fleetNetworkCurrent, runtime },
    writes: { networkMessage, networkCurrent, networkObstacle },
    clock,
    log,
  })
  const end = new AbortController()
  t.teardown(() => end.abort())
  return {
    machine,
    networkMessage,
    networkCurrent,
    networkObstacle,
    fleetNetworkCurrent,
    clock,
    log,
    start: async () => {
      await gate.load()
      void gate.run(end.signal)
      await clock.settle()
    },
    receive: async (received: NetworkMessage | undefined) => {
      fleetNetwork.set(received)
      fleetNetworkCurrent.set(true)
      if (received !== undefined) gate.received()
      await clock.settle()
    },
    docker: async (firewallBackend: string) => {
      runtime.set({ info: { firewallBackend } })
      await clock.settle()
    },
  }
}

test('a machine with nothing in the way is on the network, and has it after a restart before messages arrive', async (t) => {
  const { start, receive, networkMessage, networkCurrent, networkObstacle } = world(t)
  await start()
  await receive(message())
  t.equal(networkMessage.get()?.version, 1)
  t.equal(networkCurrent.get(), true)
  await receive(message(2))
  t.equal(networkMessage.get()?.version, 2)
  await receive(undefined)
  t.equal(networkMessage.get(), undefined)
  t.equal(networkObstacle.get(), undefined)

  const again = world(t, { checkpoint: message() })
  await again.start()
  t.equal(again.networkMessage.get()?.version, 1)
  t.equal(again.networkCurrent.get(), false)
  t.equal(again.machine.looks, 0, 'without a program')
})

test('what keeps a machine from the network is named with its remedy, and its pods are in the engine’s own network', async (t) => {
  type Machine = ReturnType<typeof world>['machine']
  const missing: ToolProblem = {
    reason: 'ProgramsMissing',
    found: 'nft is not installed',
    remedy: "Run 'apt-get install nftables', then restart the agent",
  }
  const cases: readonly [Partial<Machine>, NetworkObstacle['reason'], RegExp, RegExp][] = [
    [
      { otherAgent: 42 },
      'OtherAgent',
      /^Another agent of this machine, process 42, has/,
      /^To give it to this one, stop/,
    ],
    [{ tools: missing }, 'ProgramsMissing', /^nft is not installed$/, /^Run 'apt-get install nftables'/],
    [
      { routes: overlapping },
      'AddressesOverlap',
      /^The network 10\.100\.0\.0\/24 on wlan0 of this machine has addresses of serviceCIDR 10\.96\.0\.0\/12$/,
      /^Give the fleet a serviceCIDR that none of its networks has, or renumber wlan0, then restart this agent$/,
    ],
  ]
  for (const [machine, reason, found, remedy] of cases) {
    const { start, receive, networkMessage, networkCurrent, networkObstacle, log, ...own } = world(t)
    Object.assign(own.machine, machine)
    await start()
    await receive(message())
    t.match(networkObstacle.get(), { reason, found, remedy }, reason)
    t.equal(networkMessage.get(), undefined)
    t.equal(networkCurrent.get(), true, 'pods of an earlier network leave it')
    t.match(own.machine.saved, { reason })
    await receive(message())
    t.same(log.messages('warn'), ['This machine is not on the network of pods'], 'once')

    const again = world(t, { checkpoint: message(), obstacle: networkObstacle.get() as NetworkObstacle })
    await again.start()
    t.match(again.networkObstacle.get(), { reason }, 'also after a restart, before its links are up')
    await again.receive(message())
    t.equal(again.networkObstacle.get(), undefined)
    t.match(again.networkMessage.get(), { version: 1 }, 'until it is over')
    t.equal(again.machine.saved, undefined)
  }
})

test('a Docker with nftables keeps its machine away, from its first answer on, as long as it is so', async (t) => {
  const { start, docker, networkMessage, networkObstacle, machine } = world(t, { checkpoint: message() })
  await start()
  t.match(networkMessage.get(), { version: 1 })
  await docker('nftables')
  t.equal(networkMessage.get(), undefined)
  t.match(networkObstacle.get(), { reason: 'FirewallBackend', remedy: /"firewall-backend": "iptables"/ })
  const saved = machine.saved
  await docker('iptables')
  t.match(networkMessage.get(), { version: 1 })
  t.equal(machine.saved, undefined)

  const again = world(t, { checkpoint: message(), ...(saved && { obstacle: saved }) })
  await again.start()
  t.equal(again.networkMessage.get(), undefined, 'after a restart as before')
  await again.docker('iptables')
  t.match(again.networkMessage.get(), { version: 1 })
})

test('a machine that is on the network stays there when it gets an address of the fleet, or loses a program', async (t) => {
  const { start, receive, networkMessage, networkObstacle, machine } = world(t, { checkpoint: message() })
  machine.routes = overlapping
  machine.tools = { reason: 'ProgramsMissing', found: 'nft is not installed', remedy: 'install it' }
  await start()
  await receive(message(2))
  t.match(networkMessage.get(), { version: 2 })
  t.equal(networkObstacle.get(), undefined)
})

test('a machine that is on the network is looked at again before it takes other ranges', async (t) => {
  for (const checkpoint of [message(), undefined]) {
    const { start, receive, networkMessage, networkObstacle, machine } = world(t, checkpoint && { checkpoint })
    await start()
    await receive(message())
    machine.routes = overlapping
    const seen: (string | undefined)[] = []
    networkMessage.onChange((next) => seen.push(next?.serviceCIDR))
    await receive({ ...message(2), serviceCIDR: '10.128.0.0/12' })
    t.match(networkMessage.get(), { version: 2 }, 'of which it has no network')
    await receive({ ...message(3), serviceCIDR: '10.100.0.0/16' })
    t.match(networkObstacle.get(), { reason: 'AddressesOverlap', found: /10\.100\.0\.0\/24 on wlan0/ })
    t.same(seen, ['10.128.0.0/12', undefined], 'no part of the network has had them')
  }
})

test('of two agents of a machine the one that starts later has no part in the network, whatever it had', async (t) => {
  const { start, networkMessage, networkObstacle, machine } = world(t, { checkpoint: message() })
  machine.otherAgent = 7
  await start()
  t.equal(networkMessage.get(), undefined)
  t.match(networkObstacle.get(), { reason: 'OtherAgent' })
})

test('what could not be saved is saved later: without it the next agent would take part in the network', async (t) => {
  const { start, receive, machine, clock, log } = world(t)
  machine.routes = overlapping
  machine.isDiskFull = true
  await start()
  await receive(message())
  await clock.advance(30 * 60_000)
  t.equal(machine.saved, undefined)
  machine.isDiskFull = false
  await clock.advance(5 * 60_000)
  t.match(machine.saved, { reason: 'AddressesOverlap' })
  t.same(log.messages('warn'), [
    'This machine is not on the network of pods',
    'An obstacle to the network of pods was not saved',
  ])
})

test('a machine whose reason cannot be read has no part in the network until it is looked at again', async (t) => {
  for (const routes of [[], overlapping]) {
    const again = world(t, { checkpoint: message(), obstacle: unreadableObstacle })
    again.machine.routes = routes
    await again.start()
    t.equal(again.networkMessage.get(), undefined)
    await again.receive(message())
    t.equal(again.networkObstacle.get()?.reason, routes === overlapping ? 'AddressesOverlap' : undefined)
  }
})
