import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { dashboardSessions } from './dashboard-sessions.ts'

const jane = { user: 'jane', groups: ['ops'] }
const facts = { user: 'jane', address: '192.0.2.1', userAgent: 'browser' }
const proof = { kind: 'identity', identity: jane, sinceMs: 0 } as const
const minute = 60_000

test('a link serves once, for ten minutes, with its whole secret', async (t) => {
  const clock = fakeClock()
  const sessions = dashboardSessions({ clock })
  const { link } = sessions.createLink(jane)
  // Not the last character: some of its bits are not of the secret.
  const other = `${link.startsWith('A') ? 'B' : 'A'}${link.slice(1)}`
  t.equal(sessions.redeemLink(other), undefined)
  t.equal(sessions.redeemLink(''), undefined)
  t.match(sessions.redeemLink(link), { kind: 'identity', identity: jane, sinceMs: clock.wallMs() })
  t.equal(sessions.redeemLink(link), undefined, 'it was used')
  const late = sessions.createLink(jane)
  await clock.advance(10 * minute)
  t.equal(sessions.redeemLink(late.link), undefined, 'it expired')
})

test('a session is found by its cookie until it is revoked, and its requests end with it', async (t) => {
  const sessions = dashboardSessions({ clock: fakeClock() })
  const cookie = sessions.open(proof, facts)
  const found = sessions.find(cookie)
  t.match(found, { user: 'jane', proof })
  t.equal(sessions.find(`${cookie}x`), undefined)
  t.match(sessions.list(), [{ user: 'jane', address: '192.0.2.1' }])
  t.notOk(JSON.stringify(sessions.list()).includes(cookie.split('.')[1] ?? ''), 'no list has the secret')
  t.equal(sessions.end(found?.id ?? ''), true)
  t.equal(found?.ended.aborted, true)
  t.equal(sessions.find(cookie), undefined)
  t.equal(sessions.end(found?.id ?? ''), false)
})

test('a session ends two hours after its last request, and after twelve hours in any case', async (t) => {
  const clock = fakeClock()
  const sessions = dashboardSessions({ clock })
  const idle = sessions.open(proof, facts)
  const used = sessions.open(proof, facts)
  for (let hour = 1; hour < 12; hour++) {
    await clock.advance(60 * minute)
    t.ok(sessions.find(used))
  }
  t.equal(sessions.find(idle), undefined)
  await clock.advance(60 * minute)
  t.equal(sessions.find(used), undefined)
})

test('over the limit of a user the session that was used least recently ends', async (t) => {
  const sessions = dashboardSessions({ clock: fakeClock() })
  const first = sessions.open(proof, facts)
  const second = sessions.open(proof, facts)
  for (let more = 2; more < 50; more++) sessions.open(proof, facts)
  t.ok(sessions.find(first))
  sessions.open(proof, facts)
  t.ok(sessions.find(first))
  t.equal(sessions.find(second), undefined)
  t.equal(sessions.list().length, 50)
})

test('service accounts of one namespace have the sessions of one user', async (t) => {
  const sessions = dashboardSessions({ clock: fakeClock() })
  const other = sessions.open(proof, facts)
  for (let at = 0; at < 1_500; at++) {
    sessions.open(proof, { ...facts, user: `system:serviceaccount:tenant:robot-${at}` })
  }
  t.ok(sessions.find(other))
  t.equal(sessions.list().length, 51)
})

test('a login by the link of a session ends when that session would have ended', async (t) => {
  const clock = fakeClock()
  const sessions = dashboardSessions({ clock })
  const own = sessions.open(proof, facts)
  let last = own
  for (let hour = 1; hour < 12; hour++) {
    await clock.advance(60 * minute)
    const redeemed = sessions.redeemLink(sessions.createLink(jane, sessions.find(last)?.id).link)
    last = sessions.open(redeemed ?? proof, facts)
  }
  t.ok(sessions.find(last))
  await clock.advance(60 * minute)
  t.equal(sessions.find(last), undefined)
})

test('a user who creates many links makes only own ones invalid', async (t) => {
  const sessions = dashboardSessions({ clock: fakeClock() })
  const other = sessions.createLink({ user: 'kim', groups: [] })
  const first = sessions.createLink(jane)
  for (let more = 0; more < 1_000; more++) sessions.createLink(jane)
  t.equal(sessions.redeemLink(first.link), undefined)
  t.match(sessions.redeemLink(other.link), { identity: { user: 'kim' } })
})
