import { type Test, test } from 'tap'
import type { Node } from '../../../api/node.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { defaultBatchSettings } from './batches.ts'
import type { Notification } from './messages.ts'
import { notificationLoop } from './notification-loop.ts'
import { type Channel, notifySettings } from './notify-settings.ts'
import { SendError } from './send-message.ts'

const channelsOf = (...names: readonly string[]) =>
  notifySettings({ channels: names.map((name) => ({ name, type: 'ntfy', url: 'https://ntfy.sh/fleet' })) }, [])
    ?.channels ?? []

async function aFleet(t: Test, send: (channel: Channel, message: Notification) => Promise<void>, ...names: string[]) {
  const clock = fakeClock()
  const log = quietLog(t)
  const store = memoryStore({ clock })
  const settings = { ...defaultBatchSettings, channels: channelsOf(...(names.length === 0 ? ['phone'] : names)) }
  const stop = new AbortController()
  const running = notificationLoop({ store, send, clock, log }, settings).run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  const setReady = async (name: string, status: 'True' | 'Unknown') => {
    const present = await store.get('nodes', { namespace: '', name })
    const labels = { 'bramble.dev/link': 'ap-kitchen' }
    const node: Node = {
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} },
      status: { conditions: [{ type: 'Ready', status, reason: 'Any' }] },
    }
    if (present === undefined) await store.create('nodes', node)
    else await store.update('nodes', { ...present, ...(node.status && { status: node.status }) })
  }
  return { clock, log, setReady, store }
}

test('an access point that fails is one message, and one when it is back', async (t) => {
  const sent: string[] = []
  const { clock, setReady } = await aFleet(t, async (_, { text }) => void sent.push(text))
  const names = ['pi-1', 'pi-2', 'pi-3']
  for (const name of names) await setReady(name, 'True')
  await clock.advance(300_000)
  t.same(sent, [])
  for (const name of names) {
    await setReady(name, 'Unknown')
    await clock.advance(5_000)
  }
  await clock.advance(600_000)
  t.same(sent, ['3 nodes of link ap-kitchen are not ready: pi-1, pi-2, pi-3'])
  for (const name of names) await setReady(name, 'True')
  await clock.advance(1_200_000)
  t.same(sent.slice(1), ['Resolved: 3 nodes of link ap-kitchen are not ready: pi-1, pi-2, pi-3'])
})

test('a node that is lost is sent, however many pods have failed', async (t) => {
  const sent: string[] = []
  const { clock, store, setReady } = await aFleet(t, async (_, { text }) => void sent.push(text))
  for (let i = 0; i < 5_000; i++)
    await store.create('pods', { ...aPod({ name: `job-${i}` }), status: { phase: 'Failed' } })
  await clock.advance(300_000)
  t.equal(sent.length, 1)
  await setReady('pi-1', 'Unknown')
  await clock.advance(300_000)
  t.match(sent.at(-1), 'Node pi-1 is not ready')
})

test('a message waits for a server that is away; another channel does not', async (t) => {
  let isAway = true
  const sent: string[] = []
  const send = async ({ name }: Channel) => {
    if (name === 'away' && isAway) throw new SendError('connect ECONNREFUSED', false)
    sent.push(name)
  }
  const { clock, log, setReady } = await aFleet(t, send, 'away', 'phone')
  await setReady('pi-1', 'Unknown')
  await clock.advance(3600_000)
  t.same(sent, ['phone'])
  t.same(log.messages('warn'), ['Notification not sent'], 'logged once')
  isAway = false
  await clock.advance(300_000)
  t.same(sent, ['phone', 'away'])
})

test('a message that the server refuses is dropped', async (t) => {
  let tries = 0
  const { clock, log, setReady } = await aFleet(t, async () => {
    tries++
    throw new SendError('the server answered 403', true)
  })
  await setReady('pi-1', 'Unknown')
  await clock.advance(3600_000)
  t.equal(tries, 1)
  t.same(log.messages('warn'), ['Notification not sent', 'Notification dropped'])
})

test('a message is not kept for longer than six hours', async (t) => {
  let tries = 0
  const { clock, log, setReady } = await aFleet(t, async () => {
    tries++
    throw new SendError('connect ECONNREFUSED', false)
  })
  await setReady('pi-1', 'Unknown')
  await clock.advance(7 * 3600_000)
  const before = tries
  await clock.advance(3600_000)
  t.equal(tries, before)
  t.ok(log.messages('warn').includes('Notification dropped'))
})
