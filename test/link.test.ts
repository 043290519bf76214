/** An agent's link to the controller's own broker: in which form leases arrive, and what a metered agent asks for. */

import { type Test, test } from 'tap'
import { mqttControlPlane } from '../agent/adapters/mqtt/mqtt-control-plane.ts'
import { until } from '../agent/testing/until.ts'
import type { NodeMessage } from '../broker-controller/broker/broker.ts'
import type { BrokerLimits } from '../broker-controller/broker/mqtt/broker-limits.ts'
import { openMqttBroker } from '../broker-controller/broker/mqtt/mqtt-broker.ts'
import { certificates } from '../broker-controller/testing/mqtt-clients.ts'
import { systemClock } from '../daemon/clock.ts'
import { metricsRegistry } from '../daemon/metrics-registry.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'

/** A broker whose controller has published this, and an agent on it with a lease of `leaseDurationSeconds`. */
async function linked(
  t: Test,
  {
    announced,
    limits = {},
    leaseDurationSeconds = 40,
  }: { announced: object; limits?: Partial<BrokerLimits>; leaseDurationSeconds?: number },
) {
  const certs = await certificates()
  t.teardown(() => certs.remove())
  const log = quietLog(t)
  const clock = systemClock
  const broker = await openMqttBroker({ tls: certs.server, clock, log, registry: metricsRegistry(), limits })
  t.teardown(() => broker.close())
  const messages: NodeMessage[] = []
  const port = await broker.listen(
    { port: 0, host: '127.0.0.1' },
    {
      message: async (message) => void messages.push(message),
      connected: () => undefined,
      disconnected: () => undefined,
    },
  )
  await broker.publish(
    { kind: 'controller' },
    JSON.stringify({ state: 'online', epoch: 'e', time: 'now', ...announced }),
  )
  const { certificate, key } = certs.node('pi-1')
  const link = mqttControlPlane(
    { clock, random: () => 0.02, log },
    {
      ...{
        nodeName: 'pi-1',
        mqttUrl: `mqtts://localhost:${port}`,
        agentVersion: 'v1',
        bootID: 'b1',
        leaseDurationSeconds,
      },
      ...{ ca: certs.server.ca, certificate, key },
    },
  )
  const stopping = new AbortController()
  let received = 0
  const running = link.run({ desired: () => undefined, controllerTime: () => void received++ }, stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  await until('connected, and a message of the controller received', () => link.connected && received > 0)
  const leases = () => messages.filter(({ topic }) => topic.kind === 'lease').map(({ body }) => body)
  return { link, log, leases, messages }
}

test('a controller that takes short leases gets the digest once and then nothing but signs of life', async (t) => {
  const { link, leases } = await linked(t, { announced: { shortLeases: true } })
  link.reportNodeStatus({ conditions: [{ type: 'Ready', status: 'True' }] })
  await until('taken', () => link.settled && leases().length > 0)
  const before = leases().length
  for (let i = 0; i < 3; i++) link.renewLease()
  await until('short leases', () => leases().length === before + 3)
  t.match(leases().slice(before), [/"digest"/, '', ''])
  t.ok(link.confirmNodeStatus())
  for (let i = 0; i < 14; i++) link.renewLease()
  await until('all of them, the confirmed ones too', () => leases().length === before + 17)
  t.same(leases().slice(before + 3), ['s', ...Array(13).fill('')])
  t.ok(link.connected)
})

test('an earlier controller gets long leases, and answers the pings beside them', async (t) => {
  const { link, leases } = await linked(t, { announced: {} })
  for (let i = 0; i < 14; i++) link.renewLease()
  await until('all of them', () => leases().length >= 15)
  t.ok(leases().every((body) => /"digest":"[0-9a-f]{16}"/.test(body)))
  t.notOk(link.confirmNodeStatus())
  t.ok(link.connected)
})

test('a metered agent announces its lease, and renews it as rarely as the controller allows', async (t) => {
  const announced = { shortLeases: true, nodeMonitorGraceSeconds: 50, nodeLeaseLimitSeconds: 1_800 }
  const { link, messages } = await linked(t, { announced, leaseDurationSeconds: 1_200 })
  t.equal(link.leaseDurationSeconds, 1_200)
  t.match(JSON.parse(messages[0]?.body ?? ''), { state: 'online', leaseDurationSeconds: 1_200 })
})

test('a metered agent gets on with an earlier controller, as any other agent', async (t) => {
  const { link, log } = await linked(t, {
    announced: {},
    limits: { keepAliveSeconds: 120 },
    leaseDurationSeconds: 1_200,
  })
  t.equal(link.leaseDurationSeconds, 40)
  t.ok(link.connected)
  t.same(log.messages('error'), [])
})
