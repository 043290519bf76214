/** A fleet on the MQTT broker of a household, as Home Assistant sees it: a real Mosquitto, the controller as a process, an agent. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { homeAssistantSettings } from '../broker-controller/integrations/home-assistant/home-assistant-settings.ts'
import { openHouseholdLink } from '../broker-controller/integrations/household/household-link.ts'
import { signFile } from '../daemon/updates/minisign.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { type Controller, startController, temporaryFolder } from './support/fleet.ts'
import { type HouseholdClient, household, whyNoHousehold } from './support/household.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const announced = (id: string) => `homeassistant/device/bramble-bramble/${id}/config`
const stateOf = (id: string) => `bramble/bramble/machines/${id}/state`
const fleetState = 'bramble/bramble/fleet/state'
const status = 'bramble/bramble/status'
const buttons = ['drain', 'uncordon', 'restart']

async function addNode({ kubectlWith }: Controller, name: string): Promise<void> {
  await kubectlWith(JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }), 'apply', '-f', '-')
}

/** The values of the topic, once they are these. */
async function shows(client: HouseholdClient, topic: string, values: { readonly [key: string]: unknown }) {
  return eventually(`${topic} shows ${JSON.stringify(values)}`, () => {
    const state = JSON.parse(client.last(topic) || '{}')
    return Object.entries(values).every(([key, value]) => state[key] === value) && state
  })
}

test('machines appear, come back after a restart of either side, and disappear', {
  skip: whyNoHousehold,
}, async (t) => {
  const broker = await household(t)
  const dataDir = join(await temporaryFolder(t), 'controller')
  const homeAssistant = { ...broker.plain, publishInterval: '1s' }
  const start = (settings: object) => startController(t, { dataDir, settings: { ...settings } })
  const first = await start({ homeAssistant })
  let client = await broker.client()
  await addNode(first, 'pi-1')
  await addNode(first, 'pi.2')

  await shows(client, stateOf('pi-1'), { not_ready: 'ON', connected: 'OFF', pods: 0 })
  await shows(client, fleetState, { machines_total: 2, machines_ready: 0, alerts: 2, machines_not_ready: 'ON' })
  const device = JSON.parse(client.last(announced('pi-1')) ?? '')
  t.match(device, {
    device: {
      identifiers: ['bramble_bramble_pi-1'],
      name: 'pi-1',
      via_device: 'bramble_bramble__fleet',
      configuration_url: /^https:.*\/ui\/#\/node\/pi-1$/,
    },
    availability_topic: status,
    state_topic: stateOf('pi-1'),
    components: { not_ready: { platform: 'binary_sensor', device_class: 'problem' }, drain: { platform: 'button' } },
  })
  t.same(device.components.temperature, { platform: 'sensor' }, 'it has reported no temperature')
  t.same(device.components.drain, { platform: 'button' }, 'buttons are not configured')
  const devices = () => client.topics().filter((topic) => topic.startsWith('homeassistant/'))
  await eventually('three devices', () => devices().length === 3)
  t.match(devices()[2], /\/pi-2_[0-9a-f]{24}\/config$/, 'a name with a dot has a safe one')

  await t.test('Home Assistant starts: everything is published again', async () => {
    const before = client.count(announced('pi-1'))
    await client.publish('homeassistant/status', 'online')
    await eventually('it is announced again', () => client.count(announced('pi-1')) > before)
  })
  await t.test('the broker restarts and has forgotten everything', async () => {
    await broker.kill()
    await first.program.logged('No connection for Home Assistant, trying until it is back')
    await broker.start()
    client = await broker.client()
    await eventually('all devices are back', () => devices().length === 3 && client.last(status) === 'online')
    await shows(client, stateOf('pi-1'), { not_ready: 'ON' })
  })
  await t.test('a machine is removed', async () => {
    await first.kubectl('delete', 'node', 'pi.2')
    await eventually('its device is gone', () => devices().length === 2)
    await eventually('and its state', () => !client.topics().some((topic) => topic.includes('pi-2')))
    await shows(client, fleetState, { machines_total: 1 })
  })
  await t.test('no command is accepted while there are no buttons', async (t) => {
    await client.publish('bramble/bramble/machines/pi-1/command/drain', 'drain')
    await addNode(first, 'pi-3')
    await shows(client, stateOf('pi-3'), { cordoned: 'OFF' })
    await shows(client, stateOf('pi-1'), { cordoned: 'OFF' })
    t.notMatch(await first.kubectl('get', 'node', 'pi-1', '-o', 'yaml'), 'unschedulable')
  })
  await t.test('a machine is removed while no controller publishes', async () => {
    await first.program.stop()
    await eventually('it has gone offline', () => client.last(status) === 'offline')
    const without = await start({})
    await without.kubectl('delete', 'node', 'pi-3')
    await without.program.stop()
    const again = await start({ homeAssistant })
    await eventually('its device is gone', () => client.last(announced('pi-3')) === '')
    await eventually('and its state', () => client.last(stateOf('pi-3')) === '')
    const config = `${dataDir}.yaml`
    const refused = await again.command('homeassistant', '--remove', '--config', config)
    t.match(refused, { code: 1, stderr: /A controller is connected/ })
    await again.program.kill('SIGKILL')
    await eventually('its last will is published', () => client.last(status) === 'offline')
    const removed = await again.command('homeassistant', '--remove', '--config', config)
    t.match(removed, { code: 0, stdout: /^Removed 2 devices of the fleet bramble \(5 retained messages\)/ })
    const kept = () => client.topics().filter((topic) => !/\/command\/|^homeassistant\/status$/.test(topic))
    await eventually('nothing is left', () => kept().length === 0)
  })
})

test('an agent reports what it uses, and a button drains its machine as a user of the API', {
  skip: whyNoHousehold || whyNoDockerd(),
}, async (t) => {
  const broker = await household(t)
  const client = await broker.client()
  const fleet = await joinedFleet(t, {
    controller: { homeAssistant: { ...broker.encrypted, publishInterval: '1s', buttons } },
  })
  const { controller } = fleet
  // A command from before the controller connected.
  await client.publish('bramble/bramble/machines/pi-1/command/drain', 'drain', true)
  await fleet.startReady()
  const state = await shows(client, stateOf('pi-1'), { not_ready: 'OFF', connected: 'ON', reason: 'Ready' })
  t.match(state, { cordoned: 'OFF', version: /^\d+\.\d+\.\d+/, agent_update: state.latest_version })
  await eventually('its usage is published', () => 'memory' in JSON.parse(client.last(stateOf('pi-1')) ?? '{}'))
  const used = JSON.parse(client.last(stateOf('pi-1')) ?? '')
  t.ok(used.memory > 0 && used.memory <= 100, `${used.memory} % of memory`)
  t.ok(used.disk > 0 && used.disk <= 100, `${used.disk} % of the disk`)
  t.ok(Date.parse(used.last_boot) < Date.now(), `booted ${used.last_boot}`)
  const { components, device } = JSON.parse(client.last(announced('pi-1')) ?? '')
  t.match(components.memory, { unique_id: 'bramble_bramble_pi-1_memory', unit_of_measurement: '%' })
  t.equal(device.sw_version, state.version)

  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'web', image, command: ['sleep', '1000'] }] },
      },
    },
  }
  await controller.kubectlWith(JSON.stringify(deployment), 'apply', '-f', '-')
  await shows(client, stateOf('pi-1'), { pods: 1 })
  const { command_topic: topic, payload_press: body } = components.drain
  await client.publish(topic, `${body} `)
  await client.publish(topic, 'DRAIN')
  await client.publish(topic, body)
  await shows(client, stateOf('pi-1'), { cordoned: 'ON', pods: 0 })
  await shows(client, fleetState, { pods_running: 0, pods_waiting: 1, machines_ready: 1 })
  await client.publish(components.uncordon.command_topic, components.uncordon.payload_press)
  await shows(client, stateOf('pi-1'), { cordoned: 'OFF', pods: 1 })

  t.same(components.restart, { platform: 'button' }, 'the agent does not allow it')
  const restart = topic.replace('drain', 'restart')
  await client.publish(restart, 'restart')
  // As if the agent had written it: the agent itself, which must not restart this computer, still refuses.
  await controller.kubectl('annotate', 'node', 'pi-1', 'bramble.dev/remote-reboot=enabled')
  await eventually('the button is announced', () => {
    const { components: now } = JSON.parse(client.last(announced('pi-1')) ?? '')
    return now.restart.command_topic === restart && now.restart.device_class === 'restart'
  })
  await client.publish(restart, 'restart')
  const events = () => controller.kubectl('get', 'events', '-o', 'jsonpath={.items[*].reason}')
  await eventually('the agent refuses', async () => /(?=.*RebootRequested)(?=.*RebootRefused)/.test(await events()))

  const audit = (await readFile(join(controller.dataDir, 'audit.log'), 'utf8')).trim().split('\n')
  const lines = audit.map((line) => JSON.parse(line)).filter(({ user }) => user.username === 'bramble:home-assistant')
  t.match(
    lines.map(({ verb, objectRef, responseStatus }) => [
      verb,
      objectRef.resource,
      objectRef.subresource,
      responseStatus.code,
    ]),
    [
      ['patch', 'nodes', undefined, 200],
      ['create', 'pods', 'eviction', 201],
      ['patch', 'nodes', undefined, 200],
      ['patch', 'nodes', undefined, 200],
    ],
  )
})

/** A folder with a signed release of the agent, as scripts/release.ts makes it. */
async function published(place: string, version: string, sequence: number): Promise<string> {
  const folder = join(place, version)
  await mkdir(folder, { recursive: true })
  const archive = `archive of ${version}`
  const sha256 = createHash('sha256').update(archive).digest('hex')
  const manifest = JSON.stringify({
    ...{ format: 1, program: 'bramble-agent', version, sequence, floor: 1, runtime: '22' },
    archives: { arm64: { size: archive.length, sha256 } },
  })
  const { privateKey } = generateKeyPairSync('ed25519')
  await writeFile(join(folder, 'release.json'), manifest)
  await writeFile(join(folder, 'release.json.minisig'), signFile(Buffer.from(manifest), privateKey, version))
  await writeFile(join(folder, `bramble-agent_${version}_arm64.tar`), archive)
  return folder
}

test('the fleet shows its update, and Home Assistant starts the rollout as a user of the API', {
  skip: whyNoHousehold,
}, async (t) => {
  const broker = await household(t)
  const client = await broker.client()
  const place = await temporaryFolder(t)
  const dataDir = join(place, 'controller')
  const homeAssistant = { ...broker.plain, publishInterval: '1s', buttons: ['rollout'] }
  // A command from before the controller connected.
  await client.publish('bramble/bramble/fleet/command/rollout', 'rollout', true)
  const controller = await startController(t, { dataDir, settings: { homeAssistant } })
  const updates = async (...args: readonly string[]) => {
    const place = args[0] === 'add' ? ['--data-dir', dataDir] : ['--kubeconfig', controller.kubeconfig]
    t.match(await controller.command('updates', ...args, ...place), { code: 0 }, args.join(' '))
  }
  const entity = () => JSON.parse(client.last(announced('_fleet')) || '{}').components?.agents_update ?? {}
  await addNode(controller, 'pi-1')
  await shows(client, fleetState, { machines_total: 1 })
  t.same(entity(), { platform: 'update' }, 'there is no release')

  const report = JSON.stringify({ version: '1.4.0', sequence: 14 })
  await controller.kubectl('annotate', 'node', 'pi-1', `bramble.dev/agent-update=${report}`)
  await updates('add', await published(place, '1.5.0', 15))
  const offered = { agents_update: '1.4.0', agents_latest: '1.5.0', agents_percent: null, agents_summary: '' }
  await shows(client, fleetState, offered)
  await eventually('the entity installs', () => entity().command_topic === 'bramble/bramble/fleet/command/rollout')

  const { command_topic: topic, payload_install: word } = entity()
  await client.publish(topic, 'update')
  await client.publish('bramble/bramble/machines/pi-1/command/rollout', word)
  await addNode(controller, 'pi-2')
  await shows(client, fleetState, { machines_total: 2, ...offered })
  await client.publish(topic, word)
  await shows(client, fleetState, { agents_percent: 0 })
  const map = ['get', 'configmap', '-n', 'kube-system', 'bramble-agent-rollout', '-o', 'jsonpath={.data.rollout}']
  t.match(JSON.parse(await controller.kubectl(...map)), { target: { version: '1.5.0' }, rules: { perLink: 1 } })
  await updates('pause')
  const paused = await shows(client, fleetState, { agents_percent: null })
  t.match(paused.agents_summary, /^Paused: Paused by an operator\. 0 of \d nodes have 1\.5\.0\.$/)

  const audit = (await readFile(join(dataDir, 'audit.log'), 'utf8')).trim().split('\n')
  const lines = audit.map((line) => JSON.parse(line)).filter(({ user }) => user.username === 'bramble:home-assistant')
  t.match(
    lines.map(({ verb, objectRef, responseStatus }) => [verb, objectRef.resource, objectRef.name, responseStatus.code]),
    [['patch', 'configmaps', 'bramble-agent-rollout', 201]],
  )
})

test('a password that others can read is not sent, and a broker of another authority gets nothing', {
  skip: whyNoHousehold,
}, async (t) => {
  const broker = await household(t)
  const client = await broker.client()
  const dataDir = join(await temporaryFolder(t), 'controller')
  const [server, caFile] = [broker.encrypted.server, join(broker.folder, 'other.crt')]
  await chmod(broker.plain.passwordFile, 0o644)
  const channel = { name: 'home', type: 'mqtt', topic: 'home/alerts' }
  const settings = { homeAssistant: broker.encrypted, notify: { channels: [channel] } }
  const controller = await startController(t, { dataDir, settings })
  const lost = await controller.program.logged('No connection for Home Assistant, trying until it is back')
  t.match(JSON.stringify(lost), `chmod 600 ${broker.plain.passwordFile}`)
  const config = `${dataDir}.yaml`
  const notify = () => controller.command('notify', 'test', '--config', config)
  t.match(await notify(), { code: 1, stderr: /Cannot notify home: Other users can read/ })

  await chmod(broker.plain.passwordFile, 0o600)
  await eventually('it connects', () => client.last(status) === 'online')
  t.match(await notify(), { code: 0, stdout: 'home: sent\n' })
  await eventually('the notification arrives', () => client.last('home/alerts') !== undefined)
  t.match(JSON.parse(client.last('home/alerts') ?? ''), { status: 'firing', title: 'Test of notifications', count: 0 })
  const late = await broker.client()
  await eventually('retained messages arrive', () => late.last(status) !== undefined)
  t.equal(late.last('home/alerts'), undefined, 'it is not retained')

  await writeFile(caFile, await readFile(join(controller.dataDir, 'authority', 'ca.crt')))
  await writeFile(
    config,
    JSON.stringify({
      ...{ apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration' },
      notify: { channels: [{ ...channel, ...broker.encrypted, server, caFile }] },
    }),
  )
  t.match(await notify(), { code: 1, stderr: /Cannot notify home: .*(certificate|issuer)/ })
})

test('a connection has many messages under way, and ends with another one of its client', {
  skip: whyNoHousehold,
}, async (t) => {
  const broker = await household(t)
  const settings = homeAssistantSettings({ ...broker.plain }, [])
  if (settings === undefined) throw new Error('no settings')
  const warnings: string[] = []
  const warned = ({ message }: Error) => void warnings.push(message)
  process.on('warning', warned)
  t.teardown(() => void process.off('warning', warned))
  const client = await broker.client()
  const received: string[] = []
  const open = () =>
    openHouseholdLink(
      {
        ...{ broker: settings.broker, clientId: 'test', will: { topic: 'test/will', body: 'lost' } },
        receive: ({ topic, body, isRetained }) => void received.push(`${topic} ${body} ${isRetained}`),
      },
      new AbortController().signal,
    )
  const link = await open()
  const publish = (topic: string) => link.publish(topic, 'x', { qos: 1, retain: true })
  await Promise.all(Array.from({ length: 100 }, (_, i) => publish(`test/many/${i}`)))
  await eventually('all arrived', () => client.count('test/many/99') === 1)
  await link.subscribe('test/many/7')
  await eventually('a retained message arrives', () => received.length > 0)
  await link.unsubscribe('test/many/7')
  await client.publish('test/many/7', 'again')
  t.same(received, ['test/many/7 x true'])

  const other = await open()
  t.ok(await link.ended, 'another connection of the same client takes over')
  await t.rejects(publish('test/late'), /Cannot publish on test\/late: the connection has ended/)
  await eventually('its last will is published', () => client.last('test/will') === 'lost')
  await other.close()
  await t.rejects(other.publish('test/late', 'x', { qos: 1, retain: false }), /the connection has ended/)
  await writeFile(broker.plain.passwordFile, 'a wrong one')
  await t.rejects(open(), /Not authorized/)
  await broker.kill()
  await t.rejects(open(), /ECONNREFUSED/)
  t.same(warnings, [])
})
