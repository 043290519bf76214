import { test } from 'tap'
import { householdBroker } from '../household/household-broker.ts'
import { notifySettings } from './notify-settings.ts'

type File = NonNullable<Parameters<typeof notifySettings>[0]>

function read(file: File) {
  const problems: string[] = []
  return { settings: notifySettings(file, problems), problems }
}

const phone = { name: 'phone', type: 'ntfy', url: 'https://ntfy.sh/fleet' } as const

test('without the field nothing is sent', async (t) => {
  t.equal(notifySettings(undefined, []), undefined)
})

test('a channel and times are read', async (t) => {
  const { settings, problems } = read({ delay: '5m', groupWait: '10s', channels: [{ ...phone, namespaces: ['shop'] }] })
  t.same(problems, [])
  t.match(settings, {
    delayMs: 300_000,
    groupWaitMs: 10_000,
    resolveDelayMs: 600_000,
    channels: [{ name: 'phone', url: { value: 'https://ntfy.sh/fleet' }, selection: { namespaces: ['shop'] } }],
  })
})

test('every mistake is named by its path, and none shows the URL', async (t) => {
  const problemOf = (channel: Partial<File['channels'][number]>) =>
    read({ channels: [{ ...phone, ...channel }] }).problems.join()
  t.match(problemOf({ name: 'My Phone' }), /^notify\.channels\[0\]\.name: /)
  t.match(problemOf({ url: 'ftp://secret' }), /^notify\.channels\[0\]\.url: must begin with https:/)
  t.match(problemOf({ url: 'https://user:secret@host/' }), /must not have a password/)
  t.match(problemOf({ urlFile: '/etc/url' }), /name either url or urlFile/)
  t.match(problemOf({ tokenFile: 'token' }), /must be an absolute path/)
  t.match(
    problemOf({ url: 'http://host/secret', tokenFile: '/t' }),
    /must begin with https:\/\/ if there is a tokenFile/,
  )
  t.match(problemOf({ template: '{}' }), /template: is only for a webhook/)
  t.match(problemOf({ type: 'webhook', contentType: 'a\r\nb' }), /is not a media type/)
  for (const url of ['ftp://secret', 'https://user:secret@host/']) t.notMatch(problemOf({ url }), /secret/)
  t.match(read({ delay: 'soon', channels: [phone] }).problems, [
    'notify.delay: "soon" must be a duration (like 10s or 5m)',
  ])
  t.match(read({ channels: [phone, phone] }).problems, [/"phone" is there already/])
})

test('a channel by MQTT has its own broker, or that of the household', async (t) => {
  const household = householdBroker({ server: 'mqtt://home', username: 'me' }, 'homeAssistant', [])
  const of = (channel: Partial<File['channels'][number]>, isHousehold = true) => {
    const problems: string[] = []
    const file: File = { channels: [{ name: 'home', type: 'mqtt', topic: 'home/alerts', ...channel }] }
    const settings = notifySettings(file, problems, isHousehold ? household : undefined)
    return { channel: settings?.channels[0], problem: problems.join() }
  }
  t.match(of({}), { problem: '', channel: { type: 'mqtt', qos: 1, topic: 'home/alerts', broker: household } })
  const own = of({ server: 'mqtts://other:99', qos: 0, kinds: ['PodFailed'] })
  t.match(own, { problem: '', channel: { qos: 0, selection: { kinds: ['PodFailed'] } } })
  t.match(own.channel, { broker: { host: 'other', port: 99, isEncrypted: true, username: undefined } })
  t.match(of({}, false).problem, 'notify.channels[0].server: name a server here, or in homeAssistant')
  t.match(of({ server: 'http://x' }).problem, /^notify.channels\[0\].server: "http:\/\/x" must be mqtt:/)
  t.match(of({ username: 'me' }).problem, /server: name the broker that the other fields are for/)
  for (const topic of ['', 'a/+', '#', '$SYS/x', 'a\u0000', 'x'.repeat(257)]) {
    t.match(of({ topic }).problem, /^notify.channels\[0\].topic: must have 1 to 256 characters/, JSON.stringify(topic))
  }
  t.match(of({ qos: 2 }).problem, 'notify.channels[0].qos: 2 must be 0 or 1')
  t.match(of({ url: 'https://x' }).problem, 'notify.channels[0].url: is not for a channel of the type mqtt')
  t.match(
    read({ channels: [{ ...phone, topic: 'x' }] }).problems.join(),
    /topic: is only for a channel of the type mqtt/,
  )
})
