import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { fleetDevice } from './device-ids.ts'
import { homeAssistantSettings } from './home-assistant-settings.ts'
import { publishedDevices } from './published-devices.ts'

function publishing(...ids: readonly string[]) {
  const settings = homeAssistantSettings({ server: 'mqtt://broker' }, [])
  if (settings === undefined) throw new Error('no settings')
  const present = new Map([fleetDevice, ...ids].map((id) => [id, 1]))
  const sent: string[] = []
  let wantedCalls = 0
  const clock = fakeClock()
  const link = {
    publish: async (topic: string, body: string) => void sent.push(body === '' ? `remove ${topic}` : topic),
  }
  const published = publishedDevices(
    {
      ids: () => present.keys(),
      wanted(id, before) {
        wantedCalls++
        const cpu = present.get(id)
        return cpu === undefined
          ? undefined
          : { discovery: `device ${id}`, state: { cpu }, announced: new Set([...before, 'cpu']) }
      },
    },
    { link, clock },
    settings,
  )
  const round = async (most = { devices: 1_000, messages: 1_000 }) => {
    await published.round(most)
    return sent.splice(0)
  }
  return { ...published, present, clock, round, looked: () => wantedCalls }
}

const config = (id: string) => `homeassistant/device/bramble-bramble/${id}/config`
const state = (id: string) => `bramble/bramble/machines/${id}/state`
const fleet = [config(fleetDevice), 'bramble/bramble/fleet/state']
const none = new Map<string, ReadonlySet<string>>()

test('all devices are published at the beginning, the fleet first', async (t) => {
  const { begin, mark, round } = publishing('pi-1', 'pi-2')
  mark('pi-1')
  t.same(await round(), [], 'not before what is there is known')
  begin(none)
  t.same(await round(), [...fleet, config('pi-1'), state('pi-1'), config('pi-2'), state('pi-2')])
  t.same(await round(), [])
})

test('devices that are gone are removed, also those of an earlier connection', async (t) => {
  const { begin, mark, present, round } = publishing('pi-1')
  begin(new Map([['old', new Set(['cpu'])]]))
  const removed = (id: string) => [`remove ${config(id)}`, `remove ${state(id)}`]
  t.same(
    (await round()).filter((one) => one.startsWith('remove')),
    removed('old'),
  )
  present.delete('pi-1')
  mark('pi-1')
  t.same(await round(), removed('pi-1'))
  mark('pi-1')
  t.same(await round(), [])
})

test('a round publishes a bounded number, and later ones the rest', async (t) => {
  const names = Array.from({ length: 1_000 }, (_, i) => `pi-${i}`)
  const { begin, round } = publishing(...names)
  begin(none)
  let rounds = 0
  const sent: string[] = []
  for (; sent.length < 2_002; rounds++) {
    const some = await round({ devices: 250, messages: 40 })
    t.ok(some.length <= 41)
    sent.push(...some)
  }
  t.equal(new Set(sent).size, 2_002)
  t.equal(rounds, 51)
  t.same(await round({ devices: 0, messages: 40 }), [])
})

test('a round looks at a bounded number of devices, whether they changed or not', async (t) => {
  const { begin, markAll, looked, round } = publishing(...Array.from({ length: 100 }, (_, i) => `pi-${i}`))
  begin(none)
  await round()
  markAll()
  for (const count of [60, 41, 0]) {
    const before = looked()
    t.same(await round({ devices: 60, messages: 40 }), [])
    t.equal(looked() - before, count)
  }
})

test('a reading is published when its interval is over, without another mark', async (t) => {
  const { begin, mark, present, clock, round } = publishing('pi-1')
  begin(none)
  await round()
  present.set('pi-1', 50)
  mark('pi-1')
  t.same(await round(), [])
  await clock.advance(30_000)
  t.same(await round(), [state('pi-1')])
})

test('what was forgotten is published again', async (t) => {
  const { begin, forget, markAll, round } = publishing('pi-1')
  begin(none)
  await round()
  markAll()
  t.same(await round(), [])
  forget()
  t.equal((await round()).length, 4)
})
