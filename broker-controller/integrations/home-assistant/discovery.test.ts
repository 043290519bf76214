import { test } from 'tap'
import { announcedKeys, discoveryMessage, keysAnnouncedBy } from './discovery.ts'
import { fleetEntities, machineEntities } from './machine-entities.ts'

const settings = { fleetName: 'home', topicPrefix: 'bramble/home', buttons: [] }
const parsed = (text: string) => JSON.parse(text)

test('a machine is one device with the entities that it has', async (t) => {
  const state = { not_ready: false, temperature: 48, version: '0.1.0' }
  const facts = { nodeName: 'pi-1', model: 'Raspberry Pi 4', page: 'https://fleet:6443/ui/#/node/pi-1' }
  const message = parsed(discoveryMessage(facts, announcedKeys(state, new Set(), false), state, settings))
  t.match(message.device, {
    identifiers: ['bramble_home_pi-1'],
    name: 'pi-1',
    model: 'Raspberry Pi 4',
    sw_version: '0.1.0',
    configuration_url: 'https://fleet:6443/ui/#/node/pi-1',
    via_device: 'bramble_home__fleet',
  })
  t.match(message, {
    origin: { name: 'Bramble' },
    availability_topic: 'bramble/home/status',
    state_topic: 'bramble/home/machines/pi-1/state',
  })
  t.same(message.components.temperature, {
    ...{ platform: 'sensor', name: 'Temperature', device_class: 'temperature', unit_of_measurement: '°C' },
    ...{ state_class: 'measurement', unique_id: 'bramble_home_pi-1_temperature' },
    value_template: '{{ value_json.temperature }}',
  })
  t.same(message.components.throttled, { platform: 'binary_sensor' }, 'only the platform removes an entity')
  t.same(Object.keys(message.components), [...Object.keys(machineEntities), 'drain', 'uncordon', 'restart'])
})

test('the fleet is a device of its own without buttons', async (t) => {
  const state = { machines_ready: 1, machines_total: 2 }
  const facts = { nodeName: undefined }
  const withButtons = { ...settings, buttons: ['drain'] as const }
  const message = parsed(discoveryMessage(facts, announcedKeys(state, new Set(), true), state, withButtons))
  t.match(message.device, { identifiers: ['bramble_home__fleet'], name: 'Fleet home', model: 'Fleet' })
  t.notOk('via_device' in message.device)
  t.notOk('configuration_url' in message.device)
  t.equal(message.state_topic, 'bramble/home/fleet/state')
  t.same(Object.keys(message.components), Object.keys(fleetEntities))
})

test('a button is announced where it is configured, with the word that it publishes', async (t) => {
  const of = (buttons: readonly ('drain' | 'uncordon')[]) =>
    parsed(discoveryMessage({ nodeName: 'pi.1' }, new Set(), {}, { ...settings, buttons })).components
  t.same(of(['uncordon']).drain, { platform: 'button' })
  t.match(of(['drain']).drain, {
    platform: 'button',
    command_topic: /^bramble\/home\/machines\/pi-1_[0-9a-f]{24}\/command\/drain$/,
    payload_press: 'drain',
    unique_id: /_drain$/,
  })
})

test('the button that restarts a machine is announced only for those that allow it', async (t) => {
  const of = (mayRestart: boolean) =>
    parsed(discoveryMessage({ nodeName: 'pi-1', mayRestart }, new Set(), {}, { ...settings, buttons: ['restart'] }))
      .components
  t.same(of(false).restart, { platform: 'button' })
  t.match(of(true).restart, { name: 'Restart', device_class: 'restart', payload_press: 'restart' })
  const off = parsed(discoveryMessage({ nodeName: 'pi-1', mayRestart: true }, new Set(), {}, settings)).components
  t.same(off.restart, { platform: 'button' }, 'not configured')
})

test('names and models of a node are lines of a bounded length', async (t) => {
  const text = discoveryMessage({ nodeName: `a\u0000b${'x'.repeat(300)}` }, new Set(), {}, settings)
  t.equal(parsed(text).device.name, `a b${'x'.repeat(60)}…`)
  t.equal(parsed(text).device.model, 'Machine')
})

test('a value that is not known now keeps an entity that was there, and makes no new one', async (t) => {
  const state = { temperature: null, memory: null, cpu: 3 }
  t.same([...announcedKeys(state, new Set(['memory', 'disk']), false)], ['cpu', 'memory'])
})

test('what was announced before is read from any text', async (t) => {
  const announced = announcedKeys({ temperature: 48, memory: 20 }, new Set(), false)
  const text = discoveryMessage({ nodeName: 'pi-1' }, announced, {}, { ...settings, buttons: ['drain'] })
  t.same([...keysAnnouncedBy(text)].toSorted(), ['memory', 'temperature'])
  const hostile = { components: { constructor: { unique_id: '1' }, memory: null, disk: {}, __proto__: {} } }
  for (const other of ['', '{', '[]', 'null', '{"components":[]}', JSON.stringify(hostile), text.padEnd(65_537)]) {
    t.equal(keysAnnouncedBy(other).size, 0)
  }
})

test('the update entity of the fleet installs where that is configured, not where those of machines do', async (t) => {
  const of = (buttons: readonly ('update' | 'rollout')[]) => {
    const announced = new Set(['agents_update'])
    return parsed(discoveryMessage({ nodeName: undefined }, announced, {}, { ...settings, buttons })).components
  }
  t.notOk('command_topic' in of(['update']).agents_update)
  t.match(of(['rollout']).agents_update, {
    ...{ platform: 'update', unique_id: 'bramble_home__fleet_agents_update', payload_install: 'rollout' },
    command_topic: 'bramble/home/fleet/command/rollout',
  })
  const machine = discoveryMessage(
    { nodeName: 'pi-1' },
    new Set(['agent_update']),
    {},
    { ...settings, buttons: ['rollout'] },
  )
  t.notOk('command_topic' in parsed(machine).components.agent_update)
})

test('the templates of update entities make only keys that Home Assistant takes', async (t) => {
  // MQTT_JSON_UPDATE_SCHEMA in homeassistant/components/mqtt/update.py: with another key the whole state is refused.
  const taken = ['installed_version', 'latest_version', 'title', 'release_summary', 'release_url', 'entity_picture']
  for (const { value_template: template } of [machineEntities.agent_update, fleetEntities.agents_update]) {
    const keys = [...template.matchAll(/'(\w+)':/g)].map(([, key]) => key)
    t.ok(keys.length > 3)
    t.same(
      keys.filter((key = '') => ![...taken, 'in_progress', 'update_percentage'].includes(key)),
      [],
    )
  }
})

test('the update entity installs where that is configured', async (t) => {
  const of = (buttons: readonly 'update'[]) =>
    parsed(discoveryMessage({ nodeName: 'pi-1' }, new Set(['agent_update']), {}, { ...settings, buttons })).components
  t.notOk('command_topic' in of([]).agent_update)
  t.match(of(['update']).agent_update, {
    command_topic: 'bramble/home/machines/pi-1/command/update',
    payload_install: 'update',
  })
  t.notOk('update' in of(['update']), 'it is not a button of its own')
})
