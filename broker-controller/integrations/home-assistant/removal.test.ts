import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { HouseholdLinkSettings } from '../household/household-link.ts'
import { homeAssistantSettings } from './home-assistant-settings.ts'
import { removeFromHomeAssistant } from './removal.ts'

const status = 'bramble/bramble/status'
const device = 'homeassistant/device/bramble-bramble/pi-1/config'
const state = 'bramble/bramble/machines/pi-1/state'

/** A removal whose broker has sent nothing yet. */
async function removing() {
  const settings = homeAssistantSettings({ server: 'mqtt://broker' }, [])
  if (settings === undefined) throw new Error('no settings')
  const clock = fakeClock()
  const emptied: string[] = []
  let receive: NonNullable<HouseholdLinkSettings['receive']> = () => undefined
  const link = {
    publish: async (topic: string, body: string) => void (body === '' && emptied.push(topic)),
    subscribe: async () => undefined,
    unsubscribe: async () => undefined,
    ended: new Promise<Error>(() => undefined),
    close: async () => undefined,
  }
  const open = async (opened: HouseholdLinkSettings) => {
    receive = opened.receive ?? receive
    return link
  }
  const removed = removeFromHomeAssistant(settings, { open, clock }, new AbortController().signal)
  removed.catch(() => undefined)
  await clock.settle()
  const arrive = (topic: string, text: string) => receive({ topic, body: Buffer.from(text), isRetained: true })
  return { clock, emptied, removed, arrive }
}

test('what a fleet has left is removed when nothing more arrives', async (t) => {
  const { clock, emptied, removed, arrive } = await removing()
  arrive(device, '{}')
  await clock.advance(1_500)
  arrive(state, '{}')
  arrive('homeassistant/device/bramble-other/pi-1/config', '{}')
  await clock.advance(2_500)
  t.same(await removed, { devices: 1, topics: 2 })
  t.same(emptied, [device, state])
})

test('a program that gets no turn for seconds waits for what arrives meanwhile', async (t) => {
  const { clock, emptied, removed, arrive } = await removing()
  clock.suspend(30_000)
  await clock.advance(0)
  for (const topic of [status, device, state]) arrive(topic, topic === status ? 'offline' : '{}')
  await clock.advance(2_500)
  t.same(await removed, { devices: 1, topics: 3 })
  t.same(emptied, [status, device, state])
})

test('while a controller publishes nothing is removed', async (t) => {
  const { clock, emptied, removed, arrive } = await removing()
  for (const topic of [status, device]) arrive(topic, topic === status ? 'online' : '{}')
  await clock.advance(2_500)
  await t.rejects(removed, { message: /^A controller is connected and would publish again/ })
  t.same(emptied, [])
})
