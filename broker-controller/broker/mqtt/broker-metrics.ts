/** The metrics of the broker. */
import { Counter, Gauge, type Registry } from 'prom-client'

export type BrokerMetrics = {
  readonly refusals: Counter<'reason'>
  readonly messages: Counter<'kind'>
}

/** Registers the broker's metrics; the gauges are read at each scrape. */
export function brokerMetrics(
  registry: Registry,
  gauges: { readonly connections: () => number; readonly pending: () => number },
): BrokerMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  gauge('bramble_broker_connections', 'Nodes connected to the MQTT broker', gauges.connections)
  gauge(
    'bramble_broker_pending_connections',
    'Connections to the MQTT broker that wait for their handshake or CONNECT',
    gauges.pending,
  )
  return {
    refusals: new Counter({
      name: 'bramble_broker_refusals_total',
      help: 'What was refused to clients of the MQTT broker',
      labelNames: ['reason'],
      registers,
    }),
    messages: new Counter({
      name: 'bramble_broker_messages_total',
      help: 'Messages of nodes taken by the MQTT broker',
      labelNames: ['kind'],
      registers,
    }),
  }
}
