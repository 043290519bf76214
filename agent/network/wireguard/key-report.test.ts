import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { keyReport } from './key-report.ts'

const own = 'Sd0W8cOi4DoBtBPwLJ1V/EWyOhB4qDSLs7ro0dCuUDw='

function message(key?: string, more: Partial<NetworkMessage> = { wireguard: { port: 51_871 } }): NetworkMessage {
  const node = { podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan' }
  return {
    ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'c' },
    nodes: [{ name: 'pi-1', ...node, ...(key && { wireguardKey: key }) }],
    ...more,
  }
}

function reporting(t: Test, first?: NetworkMessage) {
  const networkMessage = cell(first)
  const [clock, log] = [fakeClock(), quietLog(t)]
  const patches: { readonly path: string; readonly body: unknown }[] = []
  const world = { status: 200, patches, keys: 0, networkMessage, clock, log }
  const end = new AbortController()
  const { run } = keyReport(
    {
      reads: { networkMessage },
      async publicKey() {
        world.keys++
        return own
      },
      api: {
        async patch(path, body) {
          patches.push({ path, body })
          return { status: world.status, body: { message: 'no' }, dateHeader: undefined }
        },
      },
      clock,
      log,
    },
    'pi-1',
  )
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  return world
}

test('a node of a fleet without WireGuard makes no key, and reports none', async (t) => {
  const { patches, keys, networkMessage, clock } = reporting(t)
  await clock.advance(60_000)
  networkMessage.set(message(undefined, {}))
  await clock.advance(60_000)
  networkMessage.set({ ...message(), nodes: [] })
  await clock.advance(60_000)
  t.same([patches, keys], [[], 0])
})

test('the key is reported once, and again where the Node has lost it', async (t) => {
  const { patches, networkMessage, clock } = reporting(t, message())
  await clock.settle()
  t.same(patches, [
    {
      path: '/api/v1/nodes/pi-1',
      body: { metadata: { annotations: { 'bramble.dev/wireguard-public-key': own } } },
    },
  ])
  networkMessage.set(message(own))
  await clock.advance(3600_000)
  t.equal(patches.length, 1)
  networkMessage.set(message('another'))
  await clock.settle()
  t.equal(patches.length, 2)
})

test('messages about other nodes do not cause reports, and refusals are repeated rarely', async (t) => {
  const world = reporting(t, message())
  await world.clock.settle()
  for (let version = 2; version < 50; version++) {
    world.networkMessage.set({ ...message(), version })
    await world.clock.settle()
  }
  t.equal(world.patches.length, 1)
  world.status = 403
  await world.clock.advance(3600_000)
  t.ok(world.patches.length > 5 && world.patches.length < 16, `${world.patches.length} in an hour`)
  t.same(world.log.messages('warn'), ['Cannot report the WireGuard key of this node'], 'logged once')
})
