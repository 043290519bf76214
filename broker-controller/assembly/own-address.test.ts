import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ownAddress } from './own-address.ts'

test('a controller logs once that its machine lost the advertised address, and that it is back', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  let addresses = ['192.0.2.2', '172.17.0.1']
  const loop = ownAddress({ advertised: '192.0.2.2', addresses: () => addresses, clock, log })
  const end = new AbortController()
  const ended = loop?.run(end.signal)
  await clock.advance(60_000)
  t.same(log.lines, [])
  addresses = ['192.0.2.99', '172.17.0.1']
  await clock.advance(60_000)
  t.match(log.lines, [
    {
      level: 'warn',
      message: 'This machine no longer has the advertised address',
      facts: { address: '192.0.2.2', present: addresses, remedy: /restart bramble-controller/ },
    },
  ])
  addresses = ['192.0.2.2']
  await clock.advance(60_000)
  t.same(log.messages('info'), ['This machine has the advertised address again'])
  t.equal(log.lines.length, 2)
  end.abort()
  await clock.settle()
  await ended
})

test('a controller goes on where the addresses of its machine cannot be read', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  let read = (): readonly string[] => ['192.0.2.2']
  const loop = ownAddress({ advertised: '192.0.2.2', addresses: () => read(), clock, log })
  const end = new AbortController()
  const ended = loop?.run(end.signal)
  read = () => {
    throw new Error('uv_interface_addresses returned Unknown system error 24')
  }
  await clock.advance(60_000)
  t.same(log.messages('warn'), [])
  read = () => []
  await clock.advance(60_000)
  t.same(log.messages('warn'), ['This machine no longer has the advertised address'])
  end.abort()
  await clock.settle()
  await ended
})

test('a name, and the address of a router, are not looked for', async (t) => {
  const needs = { addresses: () => ['192.0.2.2'], clock: fakeClock(), log: quietLog(t) }
  for (const advertised of ['hub.example', '203.0.113.1', '127.0.0.1']) {
    t.equal(ownAddress({ ...needs, advertised }), undefined, advertised)
  }
})
