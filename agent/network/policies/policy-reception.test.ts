import { type Test, test } from 'tap'
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { policyReception } from './policy-reception.ts'
import { closedPolicies, type ReceivedPolicies } from './received-state.ts'

const message = (version: number, more: Partial<PoliciesMessage> = {}): PoliciesMessage => ({
  ...{ epoch: 'e', version, namespaces: ['shop'], sets: [], policies: [] },
  ...more,
})
const withAddress = (version: number, ip: string) =>
  message(version, { sets: [{ name: 'ab', kind: 'address', elements: [ip] }] })

function reception(t: Test, found?: PoliciesMessage | 'damaged') {
  const disk = { found, writes: 0, isFull: false }
  const clock = fakeClock()
  const policies = cell<ReceivedPolicies>(undefined)
  const log = quietLog(t)
  const write = async (now: typeof found) => {
    if (disk.isFull) throw new Error('The disk is full')
    disk.writes += 1
    disk.found = now
  }
  const checkpoint = { load: async () => disk.found, save: write, clear: () => write(undefined) }
  const loop = policyReception({ writes: { policies }, checkpoint, clock, log })
  const end = new AbortController()
  let ended: Promise<void> | undefined
  const stop = async () => {
    end.abort()
    await ended
  }
  t.teardown(stop)
  return { disk, clock, policies, log, loop, stop, run: () => (ended = loop.run(end.signal)) }
}

test('what was saved is used at the start; a damaged file closes pods, and a missing one does not', async (t) => {
  const saved = reception(t, message(3))
  await saved.loop.load(true)
  t.same(saved.policies.get(), message(3))
  const damaged = reception(t, 'damaged')
  await damaged.loop.load(true)
  t.same(damaged.policies.get(), closedPolicies)
  t.match(damaged.log.messages('warn'), [/^Pods have no connections until/])
  const upgraded = reception(t)
  await upgraded.loop.load(true)
  t.equal(upgraded.policies.get(), 'none')
  const fresh = reception(t)
  await fresh.loop.load(false)
  t.equal(fresh.policies.get(), undefined)
})

test('all pods are closed while nothing was received, and what was received stays', async (t) => {
  const { policies, loop } = reception(t)
  await loop.load(false)
  loop.close()
  t.same(policies.get(), closedPolicies)
  loop.policies(message(1))
  loop.close()
  t.same(policies.get(), message(1))
  loop.policiesOff()
  loop.close()
  t.equal(policies.get(), 'none')
})

test('rules are saved within a second, addresses of peers within a minute, and nothing twice', async (t) => {
  const { disk, clock, loop, run } = reception(t)
  await loop.load(false)
  void run()
  loop.policies(message(1))
  await clock.advance(1_000)
  t.same(disk.found, message(1))
  for (let version = 2; version < 20; version++) {
    loop.policies(withAddress(version, `10.244.1.${version}`))
    await clock.advance(2_000)
  }
  t.equal(disk.writes, 1)
  await clock.advance(60_000)
  t.same(disk.found, withAddress(19, '10.244.1.19'))
  t.equal(disk.writes, 2)
  await clock.advance(300_000)
  t.equal(disk.writes, 2)
  loop.policies(withAddress(20, '10.244.1.20'))
  await clock.advance(500)
  loop.policies(message(21, { namespaces: ['shop', 'new'] }))
  await clock.advance(1_000)
  t.match(disk.found, { version: 21 })
})

test('an older message of the same controller is not used, and one of the next controller is', async (t) => {
  const { policies, loop } = reception(t)
  loop.policies(message(5))
  loop.policies(message(4))
  t.match(policies.get(), { version: 5 })
  loop.policies(message(1, { epoch: 'f' }))
  t.match(policies.get(), { version: 1, epoch: 'f' })
})

test('without policies of the controller the checkpoint is removed', async (t) => {
  const { disk, clock, policies, loop, run } = reception(t, message(1))
  await loop.load(true)
  void run()
  loop.policiesOff()
  t.equal(policies.get(), 'none')
  await clock.advance(1_000)
  t.equal(disk.found, undefined)
  loop.policiesOff()
  await clock.advance(300_000)
  t.equal(disk.writes, 1)
})

test('a disk that takes nothing is tried again, and what is unsaved is saved at the end', async (t) => {
  const { disk, clock, log, loop, run, stop } = reception(t)
  await loop.load(false)
  void run()
  disk.isFull = true
  loop.policies(message(1))
  await clock.advance(200_000)
  t.equal(log.messages('warn').length, 1)
  disk.isFull = false
  await clock.advance(60_000)
  t.same(disk.found, message(1))
  loop.policies(withAddress(2, '10.244.1.2'))
  await stop()
  t.match(disk.found, { version: 2 })
})
