import { test } from 'tap'
import { lastAddresses } from './pod-addresses.ts'

test('a pod has its last address, also that of the agent before', async (t) => {
  const addresses = lastAddresses()
  addresses.observe('b', '10.244.1.9')
  addresses.restore({ a: '10.244.1.2', b: '10.244.1.3' })
  t.equal(addresses.of('a'), '10.244.1.2')
  t.equal(addresses.of('b'), '10.244.1.9', 'what was seen since is newer')
  t.equal(addresses.of('c'), undefined)
})

test('an address is new once, and a pod without one keeps the last', async (t) => {
  const addresses = lastAddresses()
  t.equal(addresses.observe('a', '10.244.1.2'), true)
  t.equal(addresses.observe('a', '10.244.1.2'), false)
  t.equal(addresses.observe('a', undefined), false)
  t.equal(addresses.of('a'), '10.244.1.2')
  t.equal(addresses.observe('a', '10.244.1.4'), true)
})

test('pods that are gone are forgotten', async (t) => {
  const addresses = lastAddresses()
  addresses.restore({ a: '10.244.1.2', b: '10.244.1.3' })
  t.same(addresses.keep(new Set(['b', 'c'])), { b: '10.244.1.3' })
  t.equal(addresses.of('a'), undefined)
})
