/** Counters of requests, their results and durations, under the names of kube-apiserver. */
import type { Gauge, MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { Answered } from '../filters/api-request.ts'

export type RequestCounters = {
  /** Watches open now. */
  readonly watches: Gauge
  /** `tookMs` is left out for watches: they last as long as the client stays connected. */
  readonly seen: (answered: Answered, code: number, tookMs?: number) => void
}

const httpVerbs: { readonly [verb: string]: string } = { create: 'POST', update: 'PUT', '': 'other' }

/** Registers them: once for a registry. */
export function requestCounters(registry: MetricsRegistry): RequestCounters {
  const total = registry.counter({
    name: 'apiserver_request_total',
    help: 'Requests answered, by verb, resource and status code.',
    labelNames: ['verb', 'group', 'resource', 'subresource', 'code'],
  })
  const duration = registry.histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Time from a request to its answer; watches are not counted.',
    labelNames: ['verb', 'resource'],
    bounds: [0.005, 0.025, 0.1, 0.5, 1, 5, 30],
  })
  const watches = registry.gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Watches open now.',
  })
  return {
    watches,
    seen: ({ route }, code, tookMs) => {
      const isResource = route.kind === 'resource'
      // An extension server's paths are unbounded, their groups are not: only the group becomes a label.
      const isNamed = isResource || route.kind === 'aggregated'
      const verb = isNamed ? (httpVerbs[route.verb] ?? route.verb.toUpperCase()) : 'GET'
      const group = isResource ? route.resource.group : isNamed ? route.group : ''
      const resource = isResource ? route.resource.name : ''
      const subresource = isResource ? route.subresource : ''
      total.inc({ verb, group, resource, subresource, code })
      if (tookMs !== undefined) duration.observe({ verb, resource }, tookMs / 1000)
    },
  }
}
