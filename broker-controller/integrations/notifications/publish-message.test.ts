import { test } from 'tap'
import { SecretFileError } from '../../../daemon/process/secret-file.ts'
import { householdBroker } from '../household/household-broker.ts'
import type { HouseholdLink, HouseholdLinkSettings } from '../household/household-link.ts'
import { testMessage } from './messages.ts'
import type { MqttChannel } from './notify-settings.ts'
import { publishMessage } from './publish-message.ts'

const forever = new AbortController().signal

function aChannel(): MqttChannel {
  const broker = householdBroker({ server: 'mqtt://home' }, 'x', [])
  if (broker === undefined) throw new Error('no broker')
  const selection = { kinds: undefined, namespaces: undefined }
  return { name: 'home', type: 'mqtt', broker, topic: 'home/alerts', qos: 0, selection }
}

test('a message is published once, not retained, on a connection that is closed', async (t) => {
  const steps: unknown[] = []
  const open = async ({ clientId, will }: HouseholdLinkSettings): Promise<HouseholdLink> => {
    steps.push(['open', clientId.replace(/[0-9a-f]{8}$/, 'ID'), will])
    return {
      ended: new Promise(() => {}),
      publish: async (topic, body, publishing) => void steps.push([topic, JSON.parse(body), publishing]),
      subscribe: async () => {},
      unsubscribe: async () => {},
      close: async () => void steps.push('close'),
    }
  }
  await publishMessage(aChannel(), testMessage, open, forever)
  const body = { status: 'firing', title: testMessage.title, message: testMessage.text, count: 0 }
  const published = ['home/alerts', body, { qos: 0, retain: false }]
  t.same(steps, [['open', 'bramble-notify-ID', undefined], published, 'close'])
})

test('a broker that is away is tried again, and a password that others can read is not', async (t) => {
  const failing = (error: Error) => publishMessage(aChannel(), testMessage, () => Promise.reject(error), forever)
  await t.rejects(failing(new Error('connect ECONNREFUSED')), {
    message: 'Cannot notify home: connect ECONNREFUSED',
    isFinal: false,
  })
  const [open, missing] = ['Other users can read /pw', 'Cannot read /pw: ENOENT']
  await t.rejects(failing(new SecretFileError(open, true)), { message: `Cannot notify home: ${open}`, isFinal: true })
  const other = { message: `Cannot notify home: ${missing}`, isFinal: false }
  await t.rejects(failing(new SecretFileError(missing, false)), other)
})

test('a broker that does not answer delays no end of the controller', async (t) => {
  const ending = new AbortController()
  let isClosed = false
  const link: HouseholdLink = {
    ended: new Promise(() => {}),
    publish() {
      ending.abort(new Error('the controller ends'))
      return new Promise(() => {})
    },
    subscribe: async () => {},
    unsubscribe: async () => {},
    async close() {
      isClosed = true
    },
  }
  const published = publishMessage(aChannel(), testMessage, async () => link, ending.signal)
  await t.rejects(published, { message: 'Cannot notify home: the controller ends' })
  t.ok(isClosed)
})
