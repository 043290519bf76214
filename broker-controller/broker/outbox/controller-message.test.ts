import { test } from 'tap'
import { decode } from '../../../api/decode.ts'
import { ControllerMessageSchema } from '../../../api/topics.ts'
import { type ControllerFacts, controllerMessage } from './controller-message.ts'

const nowMs = Date.parse('2026-01-02T03:04:05Z')
const facts: ControllerFacts = { epoch: 'e1', shortLeases: false }
const plain = { state: 'online', epoch: 'e1', time: '2026-01-02T03:04:05Z', contents: true }

test('nodes read when the message was made, and what this controller has', async (t) => {
  const servers = { apiServers: ['https://192.0.2.1:6443'], mqttServers: ['mqtts://192.0.2.1:8883'] }
  const cases: readonly (readonly [title: string, more: Partial<ControllerFacts>, expected: object])[] = [
    ['a controller with nothing else', {}, {}],
    ['a store, and so volumes', { storeID: 's1' }, { store: 's1', volumes: true }],
    ['authorities', { trust: 'hash' }, { trust: 'hash' }],
    ['a grace, in seconds', { nodeMonitorGraceMs: 2_500 }, { nodeMonitorGraceSeconds: 2.5 }],
    ['a grace of nothing', { nodeMonitorGraceMs: 0 }, { nodeMonitorGraceSeconds: 0 }],
    ['the longest lease', { nodeLeaseLimitMs: 1_800_000 }, { nodeLeaseLimitSeconds: 1_800 }],
    ['short leases', { shortLeases: true }, { shortLeases: true }],
    ['several controllers', { servers }, servers],
    ['a network', { network: true }, { network: true, policies: true }],
    ['no network', { network: false }, {}],
  ]
  for (const [title, more, expected] of cases) {
    const message = controllerMessage('online', { ...facts, ...more }, nowMs)
    t.same(message, { ...plain, ...expected }, title)
    t.ok(decode(ControllerMessageSchema, message).ok, `${title}: nodes can read it`)
  }
})

test('the message for a controller that is lost is the same but for its state', async (t) => {
  t.same(controllerMessage('lost', facts, nowMs), { ...plain, state: 'lost' })
})
