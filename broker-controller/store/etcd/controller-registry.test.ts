import { type Test, test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { eventually } from '../../../test/support/wait.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { controllerRegistry } from './controller-registry.ts'
import type { EtcdClient } from './etcd-client.ts'
import { EtcdError, grpcCode } from './etcd-error.ts'
import { etcdKeys } from './etcd-keys.ts'
import { methods } from './etcd-messages.ts'

const { place, url } = await etcdUnderTest()

/** Twenty times as fast. */
const clock = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 20, signal) }

const address = (proxyCertificate: string, host = '10.0.0.1') => ({
  apiServer: 'https://10.0.0.1:6443',
  mqttServer: '',
  hosts: [host],
  proxyCertificate,
  version: '1',
})

/** A registry whose calls are counted by their path, and of which the given one fails while `isAway` is set. */
async function registryIn(t: Test, prefix: string, ...expected: readonly string[]) {
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const calls = new Map<string, number>()
  const state = { isAway: false }
  const counted: EtcdClient = {
    ...client,
    async call(method, message) {
      calls.set(method.path, (calls.get(method.path) ?? 0) + 1)
      if (state.isAway && method.path === methods.txn.path) throw new EtcdError(grpcCode.unavailable, 'away')
      return client.call(method, message)
    },
  }
  const log = quietLog(t, ...expected)
  const registry = controllerRegistry({ client: counted, keys: etcdKeys(prefix), clock, log })
  const run = () => {
    const stop = new AbortController()
    const running = registry.run(stop.signal)
    t.teardown(async () => {
      stop.abort()
      await running
    })
  }
  return { registry, run, state, log, granted: () => calls.get(methods.leaseGrant.path) }
}

test('a controller has one etcd lease, however often it is registered', { skip }, async (t) => {
  const { registry, granted } = await registryIn(t, place().prefix)
  for (const certificate of ['aa', 'bb', 'cc']) await registry.register(address(certificate))
  t.same(registry.all(), [address('cc')])
  t.equal(granted(), 1)
})

test('an address that is withdrawn is gone for all controllers, and is not written again', { skip }, async (t) => {
  const { prefix } = place()
  const [one, other] = [await registryIn(t, prefix), await registryIn(t, prefix)]
  await one.registry.register(address('aa'))
  other.run()
  await eventually('the other one reads it', () => other.registry.all().length === 1)
  await one.registry.withdraw()
  t.same(one.registry.all(), [])
  one.run()
  await eventually('the other one reads none', () => other.registry.all().length === 0)
  await one.registry.refresh()
  t.same(one.registry.all(), [])
  await one.registry.register(address('bb'))
  t.same(one.registry.all(), [address('bb')], 'it may come back')
})

test('an address that could not be written is written later', { skip }, async (t) => {
  const { registry, run, state } = await registryIn(t, place().prefix)
  await registry.register(address('aa'))
  state.isAway = true
  await t.rejects(registry.register(address('bb')), { message: /may have happened/ })
  state.isAway = false
  run()
  await eventually('the new certificate', async () => registry.all()[0]?.proxyCertificate === 'bb')
})

test('two controllers with one address are logged, and make no etcd lease each time', { skip }, async (t) => {
  const warning = 'Another controller has the address of this one: give each its own advertiseAddress'
  const { prefix } = place()
  const both = [await registryIn(t, prefix, warning), await registryIn(t, prefix, warning)]
  for (const [i, { registry }] of both.entries()) await registry.register(address('aa', `10.0.0.${i}`))
  for (const { run } of both) run()
  await eventually('a warning', async () => both.some(({ log }) => log.messages('warn').includes(warning)))
  t.same(
    both.map(({ granted }) => granted()),
    [1, 1],
  )
})
