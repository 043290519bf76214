import { test } from 'tap'
import { lastAddresses } from './pod-addresses.ts'

test('a pod has its last address, also that of the agent before', async (t) => {
  const addresses = lastAddresses()
  addresses.observe('b', { ip: '10.244.1.9' })
  addresses.restore({ a: '10.244.1.2', b: '10.244.1.3' })
  t.match(addresses.of('a'), { ip: '10.244.1.2' })
  t.match(addresses.of('b'), { ip: '10.244.1.9' }, 'what was seen since is newer')
  t.equal(addresses.of('c').ip, undefined)
})

test('an address is new once, and a pod without one keeps the last', async (t) => {
  const addresses = lastAddresses()
  t.equal(addresses.observe('a', { ip: '10.244.1.2' }), true)
  t.equal(addresses.observe('a', { ip: '10.244.1.2' }), false)
  t.equal(addresses.observe('a', {}), false)
  t.match(addresses.of('a'), { ip: '10.244.1.2' })
  t.equal(addresses.observe('a', { ip: '10.244.1.4' }), true)
})

test('pods that are gone are forgotten', async (t) => {
  const addresses = lastAddresses()
  addresses.restore({ a: '10.244.1.2', b: '10.244.1.3' })
  t.same(addresses.keep(new Set(['b', 'c'])), { b: '10.244.1.3' })
  t.equal(addresses.of('a').ip, undefined)
})

test('addresses of both families are kept', async (t) => {
  const addresses = lastAddresses()
  const both = { ip: '10.244.1.2', ipv6: 'fd00:10:244:1::2' }
  t.equal(addresses.observe('a', both), true)
  t.equal(addresses.observe('a', both), false)
  const kept = addresses.keep(new Set(['a']))
  t.same(kept, { a: '10.244.1.2,fd00:10:244:1::2' })
  const later = lastAddresses()
  later.restore(kept)
  t.same(later.of('a'), both)
  t.equal(later.observe('a', { ip: '10.244.1.2' }), true, 'a fleet that gives IPv6 up')
  t.equal(later.of('a').ipv6, undefined)
})
