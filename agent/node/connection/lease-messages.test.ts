import { test } from 'tap'
import { heartbeatsPerConfirmation, leaseMessages } from './lease-messages.ts'

const long = 'bramble/v1/nodes/pi-1/lease'
const usual = { leaseDurationSeconds: 40, graceMs: 50_000 }

test('a controller that does not offer short leases gets long ones, and every fifth a ping beside it', (t) => {
  const leases = leaseMessages(long, usual)
  const forms = Array.from({ length: 6 }, () => leases.next('d1'))
  t.same(forms[0], { topic: long, body: '{"seq":1,"digest":"d1"}', confirmed: 'no' })
  t.same(
    forms.map(({ confirmed }) => confirmed),
    [...Array(4).fill('no'), 'ping', 'no'],
  )
  t.notOk(leases.canConfirmStatus)
  t.end()
})

test('a controller that takes short leases gets the digest when it has changed, and nothing otherwise', (t) => {
  const leases = leaseMessages(long, usual)
  leases.received({ shortLeases: true })
  t.same(leases.next('d1'), { topic: 'l', body: '{"seq":1,"digest":"d1"}', confirmed: 'no' })
  t.same(leases.next('d1'), { topic: 'l', body: '', confirmed: 'no' })
  t.same(leases.next('d2').body, '{"seq":3,"digest":"d2"}')
  t.same(leases.next('d2'), { topic: 'l', body: '', confirmed: 'no' })
  t.same(leases.next('d2'), { topic: 'l', body: '', confirmed: 'QoS 1' })
  leases.opened()
  t.equal(leases.next('d2').topic, long, 'what an earlier link allowed is forgotten')
  leases.received({ shortLeases: true })
  t.match(leases.next('d2').body, /"digest":"d2"/, 'and so is the digest')
  t.end()
})

test('a status that stands is confirmed by the next lease that carries no digest', (t) => {
  const leases = leaseMessages(long, usual)
  leases.opened()
  leases.received({ shortLeases: true })
  t.ok(leases.canConfirmStatus)
  leases.confirmStatus()
  t.match(leases.next('d1').body, /digest/)
  t.equal(leases.next('d1').body, 's')
  t.equal(leases.next('d1').body, '')
  leases.confirmStatus()
  leases.opened()
  leases.received({ shortLeases: true })
  t.match(leases.next('d1').body, /digest/)
  t.equal(leases.next('d1').body, '', 'a status of an earlier link is not confirmed')
  t.end()
})

test('a heartbeat is confirmed within the time for which the controller lets the node be silent', (t) => {
  const confirmedAfter = (leaseDurationSeconds: number, graceMs: number | undefined, othersLead = false) =>
    heartbeatsPerConfirmation({ leaseDurationSeconds, graceMs }, othersLead)
  t.equal(confirmedAfter(40, 50_000), 5, 'five periods of 10 s')
  t.equal(confirmedAfter(40, undefined), 5, 'with a controller that does not publish its grace period')
  t.equal(confirmedAfter(1_200, 1_500_000), 5, 'metered: five periods of 5 min')
  t.equal(confirmedAfter(40, 9_000), 1, 'with a very short grace period each')
  t.equal(confirmedAfter(40, 3_600_000), 12, 'with a very long one after two minutes')
  t.equal(confirmedAfter(40, 50_000, true), 3, 'with several controllers the answer is due within it, too')
  t.equal(confirmedAfter(40, 20_000, true), 1)
  t.end()
})
