import { test } from 'tap'
import { type HomeAssistantFile, homeAssistantSettings } from './home-assistant-settings.ts'

function read(file: HomeAssistantFile) {
  const problems: string[] = []
  const settings = homeAssistantSettings(file, problems)
  return { settings, problems }
}

const server = 'mqtt://broker'

test('a server is enough', async (t) => {
  const { settings, problems } = read({ server })
  t.same(problems, [])
  t.match(settings, {
    broker: { isEncrypted: false, host: 'broker', port: 1883, username: undefined, clientFiles: undefined },
    ...{ fleetName: 'bramble', discoveryPrefix: 'homeassistant', topicPrefix: 'bramble/bramble' },
    publishIntervalMs: 30_000,
    buttons: [],
  })
  t.equal(homeAssistantSettings(undefined, []), undefined)
})

test('all fields are read', async (t) => {
  const files = { caFile: '/ca', certFile: '/crt', keyFile: '/key', passwordFile: '/password', username: 'me' }
  const prefixes = { fleetName: 'attic', discoveryPrefix: 'ha', topicPrefix: 'home/fleet' }
  const { settings, problems } = read({
    ...{ ...files, ...prefixes, server: 'mqtts://[fd00::1]:1234', publishInterval: '5m' },
    buttons: ['drain', 'drain'],
  })
  t.same(problems, [])
  t.match(settings, {
    ...prefixes,
    broker: { isEncrypted: true, host: 'fd00::1', port: 1234, clientFiles: { certificate: '/crt', key: '/key' } },
    publishIntervalMs: 300_000,
  })
  t.same(settings?.buttons, ['drain'])
})

test('what is wrong is named with its field', async (t) => {
  const wrong = (file: Partial<HomeAssistantFile>, ...expected: readonly RegExp[]) => {
    const { problems } = read({ server, ...file })
    t.equal(problems.length, expected.length, problems.join('; '))
    for (const [at, one] of expected.entries()) t.match(problems[at], one)
  }
  for (const other of [
    'http://broker',
    'broker:1883',
    'mqtt://me:pw@broker',
    'mqtt://broker/path',
    'mqtt://broker?x',
    'mqtt://',
    '',
  ]) {
    wrong({ server: other }, /^homeAssistant.server: ".*" must be mqtt:\/\/HOST:PORT/)
  }
  for (const fleetName of ['', 'Home', '-a', 'a/b', 'x'.repeat(33)]) {
    wrong({ fleetName, topicPrefix: 'x' }, /^homeAssistant.fleetName: /)
  }
  for (const topicPrefix of ['', 'a//b', 'a/+', '#', '$SYS', '/a', 'a b', 'x'.repeat(129)]) {
    wrong({ topicPrefix }, /^homeAssistant.topicPrefix: .* must be letters/)
  }
  wrong({ topicPrefix: 'bramble/v1' }, /bramble\/v1 belongs to the nodes/)
  wrong({ topicPrefix: 'homeassistant/x' }, /must not be below discoveryPrefix/)
  wrong({ publishInterval: '100ms' }, /^homeAssistant.publishInterval: "100ms" must be a duration of at least 1s/)
  wrong({ publishInterval: 'soon' }, /publishInterval/)
  wrong({ passwordFile: '/pw' }, /^homeAssistant.passwordFile: name the username/)
  wrong({ username: '' }, /^homeAssistant.username/)
  wrong({ caFile: '/ca' }, /^homeAssistant.caFile: the server must begin with mqtts/)
  wrong({ server: 'mqtts://b', certFile: '/c' }, /certFile and keyFile must be given together/)
  wrong({ server: 'mqtts://b', caFile: 'ca' }, /^homeAssistant.caFile: "ca" must be an absolute path/)
})
