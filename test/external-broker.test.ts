/** The control plane on a real Mosquitto: the contract of brokers, and an agent whose controller is behind it. */

import { type Test, test } from 'tap'
import { mqttControlPlane } from '../agent/adapters/mqtt/mqtt-control-plane.ts'
import { noMosquitto } from '../agent/testing/mosquitto.ts'
import { until } from '../agent/testing/until.ts'
import { aNode, aPod } from '../api/testing/builders.ts'
import type { DesiredMessage } from '../api/topics.ts'
import type { NodeListener } from '../broker-controller/broker/broker.ts'
import { limitMessages } from '../broker-controller/broker/inbox/message-limits.ts'
import { nodeInbox } from '../broker-controller/broker/inbox/node-inbox.ts'
import { openExternalBroker } from '../broker-controller/broker/mqtt-client/external-broker.ts'
import { nodeOutbox } from '../broker-controller/broker/outbox/node-outbox.ts'
import { sessionBoard } from '../broker-controller/sessions/session-board.ts'
import { eventRecorder } from '../broker-controller/store/event-recorder.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import { brokerContract } from '../broker-controller/testing/broker-contract.ts'
import { storageBoard } from '../broker-controller/usage/storage-board.ts'
import { usageBoard } from '../broker-controller/usage/usage-board.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { metricsRegistry } from '../daemon/metrics-registry.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { mosquittoFleet } from './support/mosquitto-server.ts'

async function started(t: Test) {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const { port, controller: tls } = server
  const broker = openExternalBroker({
    ...{ host: 'localhost', port, clientId: 'bramble-controller', tls: () => tls },
    lastWill: () => 'lost',
    ...{ clock, random: Math.random, log: quietLog(t), registry: metricsRegistry() },
  })
  const stopping = new AbortController()
  const running = broker.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  /** Resolves when messages of nodes are passed to the listener. */
  const listen = async (listener: NodeListener) => {
    broker.listen(listener)
    await until('the controller is connected', () => broker.isConnected)
  }
  return { server, broker, listen }
}

brokerContract(
  'Mosquitto',
  async (t, listener) => {
    const { server, broker, listen } = await started(t)
    await listen(listener)
    return { broker, port: server.port, tlsOf: server.keysOf }
  },
  { skip: noMosquitto },
)

test('an agent and its controller meet on Mosquitto: lease, status, pods, goodbye', {
  skip: noMosquitto,
}, async (t) => {
  const { server, broker, listen } = await started(t)
  const log = quietLog(t)
  const store = memoryStore({ clock })
  await store.create('nodes', withoutVersion(aNode({ name: 'pi-a' })))
  await store.create('pods', withoutVersion(aPod({ name: 'web', nodeName: 'pi-a' })))
  const outbox = nodeOutbox({ store, broker, clock, log, epoch: 'epoch-1' })
  const events = eventRecorder({ store, clock })
  const registry = metricsRegistry()
  const shared = { store, broker, clock, log, events, registry }
  const inbox = nodeInbox({
    ...shared,
    usage: usageBoard({ clock }),
    sessions: sessionBoard({ clock }),
    storage: storageBoard(),
    podsOf: outbox.podsOf,
    desired: outbox,
  })
  await listen(limitMessages(inbox, { clock, registry }))
  const stopping = new AbortController()
  const running = Promise.all([inbox.run(stopping.signal), outbox.run(stopping.signal)])
  t.teardown(async () => {
    stopping.abort()
    await running
  })

  const { ca, certificate, key } = server.keysOf('pi-a')
  const identity = {
    nodeName: 'pi-a',
    mqttUrl: `mqtts://localhost:${server.port}`,
    agentVersion: 'v1',
    bootID: 'boot-1',
  }
  const link = mqttControlPlane({ clock, random: () => 0.02, log }, { ...identity, ca, certificate, key })
  const desired: DesiredMessage[] = []
  const leaving = new AbortController()
  const linked = link.run({ desired: (message) => void desired.push(message) }, leaving.signal)
  t.teardown(async () => {
    leaving.abort()
    await linked
  })

  await until('the node has its pods', () => desired.some(({ pods }) => pods[0]?.metadata.name === 'web'))
  link.reportNodeStatus({ conditions: [{ type: 'Ready', status: 'True' }] })
  const node = async () => store.get('nodes', { namespace: '', name: 'pi-a' })
  await until('the status is stored', async () => (await node())?.status?.conditions?.at(-1)?.status === 'True')
  t.equal(link.confirmNodeStatus(), false, 'without the identity of senders no short leases are offered')
  const lease = async () => store.get('leases', { namespace: 'kube-node-lease', name: 'pi-a' })
  const annotations = async () => (await lease())?.metadata.annotations
  const before = (await lease())?.spec?.renewTime ?? ''
  t.ok(link.renewLease())
  await until('the lease is renewed', async () => ((await lease())?.spec?.renewTime ?? '') > before)
  t.same(await annotations(), { 'bramble.dev/connection': 'online', 'bramble.dev/boot-id': 'boot-1' })
  leaving.abort()
  await linked
  await until('the goodbye is stored', async () => (await annotations())?.['bramble.dev/connection'] === 'goodbye')
})

function withoutVersion<T extends { readonly metadata: { readonly resourceVersion: string } }>(object: T) {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
