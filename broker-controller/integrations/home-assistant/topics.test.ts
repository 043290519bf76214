import { test } from 'tap'
import { fleetDevice } from './device-ids.ts'
import {
  announcedDevice,
  commandFilter,
  commandIn,
  commandTopic,
  discoveryFilter,
  discoveryTopic,
  fleetCommandTopic,
  isFleetCommand,
  isOwnTopic,
  stateTopic,
  statusTopic,
} from './topics.ts'

const place = { discoveryPrefix: 'homeassistant', fleetName: 'home' }
const buttons = { topicPrefix: 'b/h', buttons: ['drain'] as const }

test('a fleet finds its own announcements, and no others', async (t) => {
  t.equal(discoveryTopic(place, 'pi-1'), 'homeassistant/device/bramble-home/pi-1/config')
  t.equal(discoveryFilter(place), 'homeassistant/device/bramble-home/+/config')
  for (const id of ['pi-1', 'x_0123', fleetDevice]) t.equal(announcedDevice(discoveryTopic(place, id), place), id)
  for (const topic of [
    'homeassistant/device/bramble-home2/pi-1/config',
    'homeassistant/device/bramble-home/a/b/config',
    'homeassistant/device/bramble-home//config',
    'homeassistant/status',
    'homeassistant/device/bramble-home/config',
  ]) {
    t.equal(announcedDevice(topic, place), undefined, topic)
  }
})

test('a command is exactly the word of a button that is configured', async (t) => {
  t.equal(commandTopic('b/h', 'pi-1', 'drain'), 'b/h/machines/pi-1/command/drain')
  t.equal(commandFilter('b/h', 'drain'), 'b/h/machines/+/command/drain')
  t.same(commandIn('b/h/machines/pi-1/command/drain', 'drain', buttons), { id: 'pi-1', button: 'drain' })
  for (const body of ['', 'DRAIN', ' drain', 'drain\n', 'uncordon', 'PRESS']) {
    t.equal(commandIn('b/h/machines/pi-1/command/drain', body, buttons), undefined, JSON.stringify(body))
  }
  t.equal(commandIn('b/h/machines/pi-1/command/uncordon', 'uncordon', buttons), undefined, 'it is not configured')
  const others = [
    'b/h/machines/pi-1/command/drain/x',
    'b/h/machines/Pi/command/drain',
    'b/h/machines//command/drain',
    'b/h/machines/pi-1/state',
    'x/h/machines/pi-1/command/drain',
    'b/h/machines/pi-1/command/reboot',
  ]
  for (const topic of others) t.equal(commandIn(topic, 'drain', buttons), undefined, topic)
})

test('the command of the fleet is apart from those of machines', async (t) => {
  const settings = { topicPrefix: 'b/h', buttons: ['rollout'] as const }
  t.equal(fleetCommandTopic('b/h'), 'b/h/fleet/command/rollout')
  t.equal(commandFilter('b/h', 'rollout'), 'b/h/fleet/command/rollout')
  t.ok(isFleetCommand('b/h/fleet/command/rollout', 'rollout', settings))
  t.notOk(isFleetCommand('b/h/fleet/command/rollout', 'rollout', buttons), 'it is not configured')
  t.notOk(isFleetCommand('b/h/fleet/command/rollout', 'update', settings))
  t.notOk(isFleetCommand('b/h/machines/fleet/command/rollout', 'rollout', settings))
  t.equal(commandIn('b/h/machines/pi-1/command/rollout', 'rollout', settings), undefined)
  t.equal(commandIn('b/h/fleet/command/rollout', 'rollout', settings), undefined)
})

test('states of machines and of the fleet are apart', async (t) => {
  t.equal(stateTopic('b/h', 'pi-1'), 'b/h/machines/pi-1/state')
  t.equal(stateTopic('b/h', fleetDevice), 'b/h/fleet/state')
  t.equal(statusTopic('b/h'), 'b/h/status')
})

test('a removal touches only what a controller retains', async (t) => {
  for (const topic of [statusTopic('b/h'), stateTopic('b/h', fleetDevice), stateTopic('b/h', 'pi-1')]) {
    t.ok(isOwnTopic(topic, 'b/h'), topic)
  }
  for (const topic of [
    'b/h',
    'b/h/other',
    'b/h/machines/a/b/state',
    'b/h/machines/state',
    'b/hx/status',
    'b/h/machines//state',
  ]) {
    t.notOk(isOwnTopic(topic, 'b/h'), topic)
  }
})
