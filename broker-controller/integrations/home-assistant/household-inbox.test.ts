import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { homeAssistantSettings } from './home-assistant-settings.ts'
import { householdInbox } from './household-inbox.ts'

type Buttons = NonNullable<ReturnType<typeof homeAssistantSettings>>['buttons']

function receiving(t: Parameters<typeof quietLog>[0], buttons: Buttons = ['drain', 'restart']) {
  const settings = homeAssistantSettings({ server: 'mqtt://broker', buttons: [...buttons] }, [])
  if (settings === undefined) throw new Error('no settings')
  const pressed: string[] = []
  const log = quietLog(t)
  const messages = householdInbox(
    {
      fleet: { node: (id) => nodes.find(({ metadata }) => metadata.name === id) },
      buttons: {
        press: (node, button) => void pressed.push(`${button} ${node}`),
        pressFleet: () => void pressed.push('fleet'),
      },
      limited: limitLog(log, fakeClock()),
    },
    settings,
  )
  const receive = (topic: string, body: string, isRetained = false) =>
    messages.receive({ topic, body: Buffer.from(body), isRetained })
  return { ...messages, receive, pressed, log }
}

const nodes = [
  aNode({ name: 'pi-1' }),
  aNode({ name: 'pi-5', annotations: { 'bramble.dev/remote-reboot': 'enabled' } }),
]
const command = 'bramble/bramble/machines/pi-1/command/drain'

test('a button is pressed by its word, now, for a machine of the fleet', async (t) => {
  const { receive, pressed, log } = receiving(t)
  receive(command, 'drain')
  t.same(pressed, ['drain pi-1'])
  receive(command, 'drain', true)
  receive(command, `drain${' '.repeat(70)}`)
  receive(command.replace('pi-1', 'pi-2'), 'drain')
  receive('bramble/bramble/machines/pi-1/command/uncordon', 'uncordon')
  t.same(pressed, ['drain pi-1'])
  t.equal(log.messages('warn').length, 3, 'all but the retained one are logged')
  for (let i = 0; i < 1_000; i++) receive(command, 'x')
  t.equal(log.messages('warn').length, 5, 'a flood is logged a few times')
})

test('a machine that does not allow it is not restarted', async (t) => {
  const { receive, pressed, log } = receiving(t)
  const restart = 'bramble/bramble/machines/pi-5/command/restart'
  receive(restart, 'restart')
  t.same(pressed, ['restart pi-5'])
  receive(restart.replace('pi-5', 'pi-1'), 'restart')
  t.same(pressed, ['restart pi-5'])
  t.equal(log.messages('warn').length, 1)
})

test('the button of the fleet is pressed by its word, now, where it is configured', async (t) => {
  const topic = 'bramble/bramble/fleet/command/rollout'
  const { receive, pressed, log } = receiving(t, ['rollout'])
  receive(topic, 'rollout', true)
  for (const word of ['', 'ROLLOUT', 'update', `rollout${' '.repeat(70)}`]) receive(topic, word)
  receive('bramble/bramble/machines/pi-1/command/rollout', 'rollout')
  receive('bramble/bramble/machines/_fleet/command/rollout', 'rollout')
  t.same(pressed, [])
  t.ok(log.messages('warn').length > 0)
  receive(topic, 'rollout')
  t.same(pressed, ['fleet'])
  const others = receiving(t, ['drain', 'uncordon', 'restart', 'update'])
  others.receive(topic, 'rollout')
  t.same(others.pressed, [], 'the buttons of machines do not allow it')
})

test('announcements are collected until they are taken', async (t) => {
  const { receive, takeAnnounced } = receiving(t)
  const of = (id: string) => `homeassistant/device/bramble-bramble/${id}/config`
  receive(of('pi-1'), '{"components":{"memory":{"unique_id":"1"},"disk":{"platform":"sensor"}}}', true)
  receive(of('pi-2'), 'no JSON', true)
  receive(of('pi-3'), '', true)
  const found = takeAnnounced()
  t.same([...found.keys()], ['pi-1', 'pi-2'])
  t.same([...(found.get('pi-1') ?? [])], ['memory'])
  receive(of('pi-4'), '{}', true)
  t.equal(takeAnnounced().size, 0)
})

test('of a flood of announcements 20,000 are kept', async (t) => {
  const { receive, takeAnnounced } = receiving(t)
  for (let i = 0; i <= 20_000; i++) receive(`homeassistant/device/bramble-bramble/x${i}/config`, 'x', true)
  t.equal(takeAnnounced().size, 20_000)
})

test('a start of Home Assistant is noticed, however often it is published', async (t) => {
  const { receive, takeBirth } = receiving(t)
  t.notOk(takeBirth(0))
  receive('homeassistant/status', 'online', true)
  receive('homeassistant/status', 'offline')
  t.notOk(takeBirth(0), 'a retained one is of an unknown time')
  receive('homeassistant/status', 'online')
  t.ok(takeBirth(1_000))
  t.notOk(takeBirth(1_001))
  receive('homeassistant/status', 'online')
  t.notOk(takeBirth(10_999))
  t.ok(takeBirth(11_000), 'later, not never')
})
