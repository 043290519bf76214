import { test } from 'tap'
import { controllerTerms } from './controller-terms.ts'

test('a longer lease counts once the controller on this link has granted it, and within its limit', (t) => {
  const terms = controllerTerms(1_200)
  terms.opened()
  t.equal(terms.leaseDurationSeconds, 40, 'an earlier controller publishes no limit')
  terms.received({ nodeLeaseLimitSeconds: 0 })
  t.equal(terms.graceMs, undefined, 'nor its grace period')
  terms.received({ nodeMonitorGraceSeconds: 50, nodeLeaseLimitSeconds: 1_800 })
  t.equal(terms.leaseDurationSeconds, 1_200)
  t.equal(terms.graceMs, 1_500_000)
  terms.received({ nodeMonitorGraceSeconds: 50, nodeLeaseLimitSeconds: 600 })
  t.equal(terms.leaseDurationSeconds, 600)
  t.equal(terms.graceMs, 750_000)
  terms.opened()
  t.equal(terms.leaseDurationSeconds, 40)
  t.equal(terms.graceMs, 750_000, 'how long it waits holds while there is no link')
  terms.received({ nodeMonitorGraceSeconds: 50, nodeLeaseLimitSeconds: 0 })
  t.equal(terms.leaseDurationSeconds, 40)
  t.equal(terms.graceMs, 50_000)
  t.end()
})

test('a shorter lease than usual needs no grant', (t) => {
  const terms = controllerTerms(20)
  t.equal(terms.leaseDurationSeconds, 20)
  terms.received({ nodeMonitorGraceSeconds: 50, nodeLeaseLimitSeconds: 1_800 })
  t.equal(terms.leaseDurationSeconds, 20)
  t.equal(terms.graceMs, 50_000)
  terms.received({ nodeMonitorGraceSeconds: 20, nodeLeaseLimitSeconds: 1_800 })
  t.equal(terms.graceMs, 20_000)
  t.end()
})

test('a lease of the usual length leaves the grace period of the controller as it is', (t) => {
  const terms = controllerTerms(40)
  terms.received({ nodeMonitorGraceSeconds: 45, nodeLeaseLimitSeconds: 1_800 })
  t.equal(terms.graceMs, 45_000)
  t.end()
})

test('the keep-alive is one and a half heartbeats, or the usual one where the broker refuses that', (t) => {
  t.equal(controllerTerms(40).keepaliveSeconds, 15)
  t.equal(controllerTerms(4).keepaliveSeconds, 15)
  t.equal(controllerTerms(3600).keepaliveSeconds, 1_350)
  for (const code of [5, 6]) {
    const terms = controllerTerms(1_200)
    terms.opened()
    t.equal(terms.keepaliveSeconds, 450)
    for (const other of [new Error('connect ECONNREFUSED'), undefined, { code }]) terms.failed(other)
    terms.opened()
    t.equal(terms.keepaliveSeconds, 450)
    terms.failed(Object.assign(new Error('Connection refused'), { code }))
    terms.opened()
    t.equal(terms.keepaliveSeconds, 15)
    terms.received({ nodeLeaseLimitSeconds: 1_800 })
    t.equal(terms.leaseDurationSeconds, 40, 'a heartbeat within the keep-alive')
    terms.opened()
    t.equal(terms.keepaliveSeconds, 450, 'the next controller may allow it')
  }
  t.end()
})
