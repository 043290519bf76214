import { test } from 'tap'
import { leaseMessages } from './lease-messages.ts'

const long = 'bramble/v1/nodes/pi-1/lease'

test('a controller that does not offer short leases gets long ones, and every twelfth a ping beside it', (t) => {
  const leases = leaseMessages(long)
  leases.opened()
  const forms = Array.from({ length: 13 }, () => leases.next('d1'))
  t.same(forms[0], { topic: long, body: '{"seq":1,"digest":"d1"}', confirmed: 'no' })
  t.same(
    forms.map(({ confirmed }) => confirmed),
    [...Array(11).fill('no'), 'ping', 'no'],
  )
  t.notOk(leases.canConfirmStatus)
  t.end()
})

test('a controller that takes short leases gets the digest when it has changed, and nothing otherwise', (t) => {
  const leases = leaseMessages(long)
  leases.opened()
  leases.heard({ shortLeases: true })
  t.same(leases.next('d1'), { topic: 'l', body: '{"seq":1,"digest":"d1"}', confirmed: 'no' })
  t.same(leases.next('d1'), { topic: 'l', body: '', confirmed: 'no' })
  t.same(leases.next('d2').body, '{"seq":3,"digest":"d2"}')
  t.same(leases.next('d2').body, '')
  for (let i = 5; i < 12; i++) leases.next('d2')
  t.same(leases.next('d2'), { topic: 'l', body: '', confirmed: 'QoS 1' })
  leases.opened()
  t.equal(leases.next('d2').topic, long, 'what an earlier link allowed is forgotten')
  leases.heard({ shortLeases: true })
  t.match(leases.next('d2').body, /"digest":"d2"/, 'and so is the digest')
  t.end()
})

test('a status that stands is confirmed by the next lease that carries no digest', (t) => {
  const leases = leaseMessages(long)
  leases.opened()
  leases.heard({ shortLeases: true })
  t.ok(leases.canConfirmStatus)
  leases.confirmStatus()
  t.match(leases.next('d1').body, /digest/)
  t.equal(leases.next('d1').body, 's')
  t.equal(leases.next('d1').body, '')
  t.end()
})
