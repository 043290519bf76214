import { test } from 'tap'
import { returningNodes, settleMs } from './returning-nodes.ts'

const user = 'system:node:pi-1'
const revoked = (beforeMs: number) => new Map([[user, { user, beforeMs, reason: 'Revoked' }]])
const withRights = new Set(['controller', user])
const without = new Set(['controller'])
const allowed = ['pi-1', 'pi-2']
const none = { displace: [], waiting: new Set(), waitMs: undefined }
const waits = (waitMs: number) => ({ displace: [], waiting: new Set(['pi-1']), waitMs })

test('a name that is revoked and gets a certificate at once has no rights in between', async (t) => {
  const decide = returningNodes()
  t.same(decide({ before: withRights, allowed, revocations: new Map(), nowMs: 0 }), none)
  const revocations = revoked(1)
  t.same(decide({ before: withRights, allowed, revocations, nowMs: 1_000 }), waits(settleMs))
  t.same(decide({ before: without, allowed, revocations, nowMs: 2_000 }), waits(settleMs - 1_000))
  const ended = { ...none, displace: ['pi-1'] }
  t.same(decide({ before: without, allowed, revocations, nowMs: 1_000 + settleMs }), ended)
  t.same(decide({ before: without, allowed, revocations, nowMs: 9_000 }), ended, 'again where that failed')
  t.same(decide({ before: withRights, allowed, revocations, nowMs: 10_000 }), none, 'and not once it has rights')
  t.same(
    decide({ before: withRights, allowed, revocations: revoked(2), nowMs: 20_000 }),
    waits(settleMs),
    'revoked again',
  )
})

test('a name that was removed before returns when Mosquitto has read that', async (t) => {
  const decide = returningNodes()
  const revocations = revoked(1)
  decide({ before: withRights, allowed, revocations: new Map(), nowMs: 0 })
  t.same(decide({ before: withRights, allowed: ['pi-2'], revocations, nowMs: 0 }), none)
  t.same(decide({ before: without, allowed, revocations, nowMs: 1_000 }), waits(settleMs - 1_000))
  t.same(decide({ before: without, allowed, revocations, nowMs: settleMs }), { ...none, displace: ['pi-1'] })
})

test('after a start a name keeps the rights that it has, and one that has none returns at once', async (t) => {
  const revocations = revoked(1)
  t.same(returningNodes()({ before: withRights, allowed, revocations, nowMs: 0 }), none)
  t.same(returningNodes()({ before: without, allowed, revocations, nowMs: 0 }), { ...none, displace: ['pi-1'] })
  const decide = returningNodes()
  decide({ before: withRights, allowed: ['pi-2'], revocations, nowMs: 0 })
  t.same(decide({ before: without, allowed, revocations, nowMs: 1_000 }), waits(settleMs - 1_000))
})
