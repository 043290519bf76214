/** The metrics of the broker. */
import type { Counter, MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { gauge, one } from '../../../daemon/prometheus-text.ts'

export type BrokerMetrics = {
  readonly refusals: Counter<'reason'>
  readonly messages: Counter<'kind'>
}

/** Registers the broker's metrics; the gauges are read at each scrape. */
export function brokerMetrics(
  registry: MetricsRegistry,
  gauges: { readonly connections: () => number; readonly pending: () => number },
): BrokerMetrics {
  registry.add(() => [
    gauge('bramble_broker_connections', 'Nodes connected to the MQTT broker', one(gauges.connections())),
    gauge(
      'bramble_broker_pending_connections',
      'Connections to the MQTT broker that wait for their handshake or CONNECT',
      one(gauges.pending()),
    ),
  ])
  return brokerCounters(registry)
}

/** What every broker counts, whether it is in this process or an external server. */
export function brokerCounters(registry: MetricsRegistry): BrokerMetrics {
  return {
    refusals: registry.counter({
      name: 'bramble_broker_refusals_total',
      help: 'What was refused to clients of the MQTT broker',
      labelNames: ['reason'],
    }),
    messages: registry.counter({
      name: 'bramble_broker_messages_total',
      help: 'Messages of nodes taken by the MQTT broker',
      labelNames: ['kind'],
    }),
  }
}
