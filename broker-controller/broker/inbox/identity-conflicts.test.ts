import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { eventRecorder } from '../../store/event-recorder.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { conflictIn, identityConflicts, type Sighting } from './identity-conflicts.ts'

const warning = 'Two machines use the certificate of one node'

test('two machines whose connections replace each other are reported once, with both addresses and the remedy', async (t) => {
  const { connect, events, log, clock } = world(t)
  for (let round = 0; round < 5; round++) {
    await connect('10.0.0.5', 'boot-of-one', round > 0)
    await connect('10.0.0.9', 'boot-of-other')
  }
  t.same(log.messages('warn'), [warning])
  t.match(await events(), [
    {
      type: 'Warning',
      reason: 'DuplicateIdentity',
      involvedObject: { kind: 'Node', name: 'pi-1' },
      message: /from 10\.0\.0\.5 and 10\.0\.0\.9 and replace each other.*certificates revoke pi-1/,
      count: 1,
    },
  ])
  await clock.advance(11 * 60_000)
  for (const boot of ['a', 'b', 'a']) await connect('10.0.0.5', boot)
  t.equal(log.messages('warn').length, 2, 'again when it goes on')
})

test('a boot ID that comes back after another one shows it also where both wait long in between', async (t) => {
  const { connect, log, clock } = world(t)
  await connect('10.0.0.5', 'one', false)
  await clock.advance(50_000)
  await connect('10.0.0.9', 'other', false)
  t.same(log.messages('warn'), [], 'as after a reboot with another address')
  await clock.advance(50_000)
  await connect('10.0.0.5', 'one', false)
  t.same(log.messages('warn'), [warning])
})

test('two agents on one machine show it by the pace of their connections', async (t) => {
  const { connect, events } = world(t)
  for (let count = 0; count < 6; count++) await connect('10.0.0.5', 'one')
  t.match(await events(), [{ message: /from 10\.0\.0\.5 replace each other: two agents there/ }])
})

test('a machine that reboots, roams or has a link that blinks is one machine', async (t) => {
  const { connect, log, clock } = world(t)
  for (const [address, boot] of [
    ['10.0.0.5', 'first'],
    ['10.0.0.5', 'second'],
    ['10.0.0.77', 'second'],
    ['10.0.0.5', 'second'],
    ['10.0.0.5', 'third'],
  ] as const) {
    await connect(address, boot)
    await clock.advance(20_000)
  }
  for (let blinks = 0; blinks < 20; blinks++) {
    await connect('10.0.0.5', 'third')
    await clock.advance(15_000)
  }
  t.same(log.messages('warn'), [])
})

test('sightings of ten minutes count, and replacements of one', async (t) => {
  const nowMs = 5_000_000
  const seen = (agoMs: number, more: Partial<Sighting> = {}): Sighting => ({
    atMs: nowMs - agoMs,
    address: '10.0.0.5',
    isReplacement: true,
    ...more,
  })
  const boots = (firstMs: number) => [
    seen(firstMs, { bootID: 'a' }),
    seen(300_000, { bootID: 'b', address: '10.0.0.9' }),
    seen(299_000, { bootID: 'a' }),
  ]
  t.same(conflictIn(boots(599_999), nowMs), ['10.0.0.5', '10.0.0.9'])
  t.equal(conflictIn(boots(600_000), nowMs), undefined)
  const quick = (agoMs: number, count = 5) => Array.from({ length: count }, () => seen(agoMs))
  t.same(conflictIn(quick(59_999), nowMs), ['10.0.0.5'])
  t.equal(conflictIn(quick(60_000), nowMs), undefined)
  t.equal(conflictIn(quick(1, 4), nowMs), undefined)
  const moving = ['10.0.0.1', '10.0.0.2', undefined].map((address) => seen(2, { address }))
  t.same(conflictIn([...moving, ...quick(1, 2).map((one) => ({ ...one, address: '10.0.0.2' }))], nowMs), [
    '10.0.0.2',
    'an unknown address',
  ])
})

test('replacements are noticed before a boot ID is published, and again after ten minutes', async (t) => {
  const { conflicts, clock, log } = world(t)
  await clock.advance(1_000_000)
  const replace = (count: number) => {
    for (let made = 0; made < count; made++) conflicts.connected('pi-1', '10.0.0.5', true)
  }
  replace(8)
  t.match(
    log.lines.filter(({ message }) => message === warning).map(({ facts }) => facts),
    [{ node: 'pi-1', addresses: ['10.0.0.5'] }],
  )
  await clock.advance(599_999)
  replace(8)
  t.equal(log.messages('warn').length, 1)
  await clock.advance(1)
  replace(8)
  t.equal(log.messages('warn').length, 2)
})

test('a connection has one boot ID, and a node that was deleted has no history', async (t) => {
  const { connect, conflicts, log } = world(t)
  conflicts.booted('pi-1', 'before any connection')
  await connect('10.0.0.5', 'a', false)
  await connect('10.0.0.5', 'a', false)
  conflicts.booted('pi-1', 'b')
  await connect('10.0.0.5', 'a', false)
  t.same(log.messages('warn'), [])
  await connect('10.0.0.9', 'b', false)
  conflicts.forget('pi-1')
  await connect('10.0.0.5', 'a', false)
  t.same(log.messages('warn'), [])
})

test('an event that cannot be stored is logged', async (t) => {
  const clock = fakeClock()
  const log = quietLog(t, warning)
  const error = new Error('the store is full')
  const conflicts = identityConflicts({ events: { record: () => Promise.reject(error) }, clock, log })
  for (let made = 0; made < 5; made++) conflicts.connected('pi-1', '10.0.0.5', true)
  await clock.settle()
  t.match(log.lines.at(-1), { level: 'debug', message: 'Event not recorded', facts: { node: 'pi-1', error } })
})

function world(t: Test) {
  const clock = fakeClock()
  const log = quietLog(t, warning)
  const store = memoryStore({ clock })
  const conflicts = identityConflicts({ events: eventRecorder({ store, clock }), clock, log })
  return {
    clock,
    log,
    conflicts,
    events: async () => (await store.list('events')).items,
    async connect(address: string, bootID: string, isReplacement = true) {
      conflicts.connected('pi-1', address, isReplacement)
      conflicts.booted('pi-1', bootID)
      await clock.settle()
    },
  }
}
