import { X509Certificate } from 'node:crypto'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { systemClock } from '../../daemon/clock.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import type { ControllerAddress } from '../store/controllers.ts'
import type { Leader } from '../store/election/election.ts'
import { openReplica } from './open-replica.ts'

const own = { apiServer: 'https://a:6443', mqttServer: 'mqtts://a:8883' }
const other: ControllerAddress = {
  ...{ apiServer: 'https://b:6443', mqttServer: 'mqtts://b:8883', hosts: ['b'] },
  ...{ proxyCertificate: 'bb', version: '1' },
}

async function world(t: Test, nowMs = () => Date.now()) {
  const authority = await openAuthority(join(testFolder(t), 'authority'), Date.now())
  const state = { isLeading: true, leader: undefined as Leader | undefined, refreshes: 0, monotonicMs: 0 }
  let all: ControllerAddress[] = []
  const unread: ControllerAddress[] = []
  let changed: () => Promise<void> | void = () => undefined
  const registry = metricsRegistry()
  const replica = openReplica({
    election: {
      campaign: async () => undefined,
      keep: async () => undefined,
      isLeading: () => state.isLeading,
      leader: () => state.leader,
      resign: async () => undefined,
    },
    freshness: { latest: async () => true, until: async () => true },
    controllers: {
      withdraw: async () => undefined,
      async register(self) {
        all = [...all.filter(({ apiServer }) => apiServer !== self.apiServer), self]
      },
      all: () => all,
      async refresh() {
        state.refreshes += 1
        all = [...all, ...unread.splice(0)]
      },
      onChange: () => undefined,
      run: async () => undefined,
    },
    own: {
      authority: () => authority,
      onChange(listener) {
        changed = listener
      },
    },
    hosts: ['a', 'localhost'],
    registry,
    clock: { ...systemClock, wallMs: nowMs, monotonicMs: () => state.monotonicMs },
    log: quietLog(t),
  })
  if (replica === undefined) throw new Error('It is one of several')
  return {
    ...{ replica, state, registry },
    renew: async () => changed(),
    all: () => all,
    /** Another controller has written its address; this one has not read it. */
    starts: (one: ControllerAddress) => void unread.push(one),
  }
}

test('without an election it is the only controller', async (t) => {
  const authority = await openAuthority(join(testFolder(t), 'authority'), Date.now())
  const shown = { authority: () => authority, onChange: () => undefined }
  const needs = { own: shown, hosts: [], registry: metricsRegistry(), clock: systemClock, log: quietLog(t) }
  t.equal(openReplica(needs), undefined)
})

test('it leads while it holds the lease and its loops run; metrics and readiness show it', async (t) => {
  const { replica, state, registry } = await world(t)
  t.equal(replica.isLeading(), false, 'its loops do not run yet')
  t.equal(replica.readiness.name, 'standby')
  await t.rejects(async () => replica.readiness.check(), /no controller leads/)
  replica.lead(true)
  t.equal(replica.isLeading(), true)
  t.equal(replica.readiness.name, 'leading')
  await replica.readiness.check()
  t.match(registry.text(), /^leader_election_master_status\{name="bramble-controller"\} 1$/m)
  state.isLeading = false
  t.equal(replica.isLeading(), false, 'the lease was not renewed')
  t.match(registry.text(), /^leader_election_master_status\{name="bramble-controller"\} 0$/m)
})

test('the leader is another controller, never this one itself', async (t) => {
  const { replica, state } = await world(t)
  await replica.register(own)
  state.leader = { host: 'a', pid: 1, server: own.apiServer }
  t.equal(replica.leader(), undefined)
  state.leader = { host: 'b', pid: 1, server: other.apiServer }
  t.equal(replica.leader(), other.apiServer)
})

test('the addresses of all controllers begin with those of this one; one without an MQTT port has none', async (t) => {
  const { replica, starts } = await world(t)
  starts(other)
  starts({ ...other, apiServer: 'https://c:6443', mqttServer: '' })
  await replica.controllers.refresh()
  await replica.register(own)
  t.same(replica.servers(), {
    apiServers: ['https://a:6443', 'https://b:6443', 'https://c:6443'],
    mqttServers: ['mqtts://a:8883', 'mqtts://b:8883'],
  })
})

test('a controller that has just started is found by its certificate; strangers make it ask once a second', async (t) => {
  const { replica, state, starts } = await world(t)
  t.equal(await replica.isController('xx'), false)
  t.equal(state.refreshes, 1)
  starts(other)
  t.equal(await replica.isController('bb'), false, 'it asked a moment ago')
  t.equal(state.refreshes, 1)
  state.monotonicMs += 1_000
  t.equal(await replica.isController('bb'), true)
  for (let i = 0; i < 5; i++) await replica.isController('xx')
  t.equal(state.refreshes, 2)
})

test('another certificate is written before it is shown', async (t) => {
  const { replica, renew, all } = await world(t)
  await replica.register(own)
  const fingerprint = (certificate: string) =>
    new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase()
  const first = replica.credentials().certificate
  t.equal(all()[0]?.proxyCertificate, fingerprint(first))
  await renew()
  const second = replica.credentials().certificate
  t.not(second, first)
  t.equal(all()[0]?.proxyCertificate, fingerprint(second))
  t.equal(await replica.isController(fingerprint(second)), true)
})

test('while the clock is wrong nothing is passed on: 503', async (t) => {
  const { replica } = await world(t, () => 0)
  t.throws(() => replica.credentials(), /no certificate: its clock is wrong/)
  await replica.register(own)
  t.pass('its address is written all the same')
})

test('of the other controllers those with this port that run are given by host', async (t) => {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const { replica, starts } = await world(t)
  starts({ ...other, apiServer: `https://127.0.0.1:${port}` })
  starts({ ...other, apiServer: 'https://127.0.0.1:1' })
  await replica.controllers.refresh()
  await replica.register(own)
  t.same(await replica.runningWith(port), ['127.0.0.1'])
})
