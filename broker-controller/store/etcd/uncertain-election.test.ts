import { type Test, test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { eventually } from '../../../test/support/wait.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { uncertainEtcd } from '../../testing/uncertain-etcd.ts'
import { etcdKeys } from './etcd-keys.ts'
import { methods } from './etcd-messages.ts'
import { leaderElection } from './leader-election.ts'
import { openLeaseVersions } from './lease-versions.ts'
import { presentOwner } from './owner-key.ts'
import { ownProcess } from './owner-process.ts'

const { place, url } = await etcdUnderTest()
/** Ten times as fast. */
const clock = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 10, signal) }
const never = new AbortController().signal

async function candidate(t: Test, prefix: string) {
  const keys = etcdKeys(prefix)
  const inner = await rawClient(url)
  const etcd = uncertainEtcd(inner)
  const log = quietLog(t)
  const self = { ...ownProcess(), began: `${Math.random()}` }
  const election = leaderElection({ client: etcd.client, keys, self, hasEnded: () => false, clock, log })
  t.teardown(async () => {
    await election.resign()
    inner.close()
  })
  return { ...etcd, keys, log, election, owner: () => presentOwner(inner, keys) }
}

for (const outcome of ['happened', 'lost'] as const) {
  for (const [what, method] of [
    ['the grant of the lease', methods.leaseGrant],
    ['the transaction that makes the key', methods.txn],
  ] as const) {
    test(`a candidate leads at once when ${what} was not answered and ${outcome}`, { skip }, async (t) => {
      const { election, breakNext, calls, keys, client, log, owner } = await candidate(t, place().prefix)
      breakNext(method, outcome)
      const term = await election.campaign('https://10.0.0.1:6443', never)
      t.match(term, { transitions: 0 }, 'the key did not end in between')
      t.equal((await owner())?.createRevision, term?.revision)
      t.equal(election.isLeading(), true)
      t.ok(calls(methods.leaseGrant) <= 2)
      t.same(log.messages('warn'), ['Cannot take part in the election of a leader'])
      const condition = election.condition()
      if (condition === undefined) throw new Error('It does not lead')
      const written = await client.call(methods.txn, {
        compare: [condition],
        success: [{ put: { key: keys.leaseVersions, value: Buffer.from('1') } }],
      })
      t.equal(written.succeeded, true, 'its writes pass the condition')
    })
  }
}

test('of two candidates whose claims were not answered one leads', { skip }, async (t) => {
  const { prefix } = place()
  const both = [await candidate(t, prefix), await candidate(t, prefix)]
  for (const { breakNext } of both) breakNext(methods.txn, 'happened')
  const stop = new AbortController()
  const campaigns = both.map(({ election }, at) => election.campaign(`https://10.0.0.${at}:6443`, stop.signal))
  await Promise.race(campaigns)
  t.equal(both.filter(({ election }) => election.isLeading()).length, 1)
  stop.abort()
  const terms = await Promise.all(campaigns)
  t.equal(terms.filter((term) => term !== undefined).length, 1)
})

test('a renewal that is not answered is tried again', { skip }, async (t) => {
  const { election, breakNext, log } = await candidate(t, place().prefix)
  await election.campaign('https://10.0.0.1:6443', never)
  const stop = new AbortController()
  const kept = election.keep(stop.signal)
  breakNext(methods.leaseKeepAlive, 'lost')
  await eventually('renewed again', async () => log.messages('info').length > 0)
  t.same(log.messages('warn'), ['Cannot renew the lease of the leader in etcd'])
  t.equal(election.isLeading(), true)
  stop.abort()
  await kept
})

for (const outcome of ['happened', 'lost'] as const) {
  test(`the key is free after a release that was not answered and ${outcome}`, { skip }, async (t) => {
    const { election, breakNext, owner } = await candidate(t, place().prefix)
    await election.campaign('https://10.0.0.1:6443', never)
    breakNext(methods.leaseRevoke, outcome)
    await election.resign()
    t.equal(await owner(), undefined)
  })

  test(`versions of leases are reserved after a write that was not answered and ${outcome}`, { skip }, async (t) => {
    const { election, breakNext, client, keys, log } = await candidate(t, place().prefix)
    await election.campaign('https://10.0.0.1:6443', never)
    breakNext(methods.txn, outcome)
    const open = () => openLeaseVersions({ client, keys, fence: election, clock, log })
    await t.rejects(open(), /ECONNRESET/)
    t.equal((await open()).last(), outcome === 'happened' ? 10_000_000 : 0)
  })
}

test('a candidate that ends after a claim that was not answered leaves no key', { skip }, async (t) => {
  const { election, breakNext, calls, owner } = await candidate(t, place().prefix)
  breakNext(methods.txn, 'happened')
  const stop = new AbortController()
  const campaign = election.campaign('https://10.0.0.1:6443', stop.signal)
  await eventually('the claim', async () => calls(methods.txn) === 1 && (await owner()) !== undefined)
  stop.abort()
  await campaign
  await election.resign()
  t.equal(await owner(), undefined)
})
