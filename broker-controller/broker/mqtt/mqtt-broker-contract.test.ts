import { t } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { brokerContract } from '../../testing/broker-contract.ts'
import { certificates } from '../../testing/mqtt-clients.ts'
import { openMqttBroker } from './mqtt-broker.ts'

const certs = await certificates()
t.teardown(() => certs.remove())

brokerContract('embedded', async (t, listener) => {
  const log = quietLog(t, 'MQTT refused')
  const broker = await openMqttBroker({ tls: certs.server, clock: systemClock, log, registry: metricsRegistry() })
  t.teardown(() => broker.close())
  const port = await broker.listen({ port: 0, host: '127.0.0.1' }, listener)
  return { broker, port, tlsOf: (node) => ({ ca: certs.server.ca, ...certs.node(node) }) }
})
