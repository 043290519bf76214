/** Counters of requests, their results and durations, under the names of kube-apiserver. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Answered } from '../requests.ts'

export type RequestCounters = {
  /** Watches open now. */
  readonly watches: Gauge
  /** `tookMs` is left out for watches: they last as long as the client stays connected. */
  readonly seen: (answered: Answered, code: number, tookMs?: number) => void
}

const httpVerbs: { readonly [verb: string]: string } = { create: 'POST', update: 'PUT' }

/** Registers them: once for a registry. */
export function requestCounters(registry: Registry): RequestCounters {
  const total = new Counter({
    name: 'apiserver_request_total',
    help: 'Requests answered, by verb, resource and status code.',
    labelNames: ['verb', 'group', 'resource', 'subresource', 'code'],
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Time from a request to its answer; watches are not counted.',
    labelNames: ['verb', 'resource'],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 30],
    registers: [registry],
  })
  const watches = new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Watches open now.',
    registers: [registry],
  })
  return {
    watches,
    seen: ({ route }, code, tookMs) => {
      const isResource = route.kind === 'resource'
      const verb = isResource ? (httpVerbs[route.verb] ?? route.verb.toUpperCase()) : 'GET'
      const group = isResource ? route.resource.group : ''
      const resource = isResource ? route.resource.name : ''
      const subresource = isResource ? route.subresource : ''
      total.inc({ verb, group, resource, subresource, code })
      if (tookMs !== undefined) duration.observe({ verb, resource }, tookMs / 1000)
    },
  }
}
