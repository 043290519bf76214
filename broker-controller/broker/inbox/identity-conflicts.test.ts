import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { eventRecorder } from '../../store/event-recorder.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { identityConflicts } from './identity-conflicts.ts'

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

function world(t: Test) {
  const clock = fakeClock()
  const log = quietLog(t, warning)
  const store = memoryStore({ clock })
  const conflicts = identityConflicts({ events: eventRecorder({ store, clock }), clock, log })
  return {
    clock,
    log,
    events: async () => (await store.list('events')).items,
    async connect(address: string, bootID: string, isReplacement = true) {
      conflicts.connected('pi-1', address, isReplacement)
      conflicts.booted('pi-1', bootID)
      await clock.settle()
    },
  }
}
