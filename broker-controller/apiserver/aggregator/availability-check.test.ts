import { test } from 'tap'
import type { Endpoints } from '../../../api/network/endpoints.ts'
import type { Service } from '../../../api/network/service.ts'
import type { Availability } from '../../../api/registration/api-service.ts'
import type { StoredApiService } from './api-services.ts'
import { afterCheck, againMs, serviceProblem } from './availability-check.ts'

const spec = {
  ...{ group: 'wardle.example.com', version: 'v1', groupPriorityMinimum: 1_000, versionPriority: 10 },
  service: { namespace: 'wardle', name: 'api', port: 7443 },
}
const anApiService = (more: Partial<StoredApiService> = {}): StoredApiService => ({
  ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService' },
  metadata: {
    name: 'v1.wardle.example.com',
    uid: '1',
    resourceVersion: '1',
    creationTimestamp: '2026-11-30T00:00:00Z',
  },
  ...{ spec, ...more },
})
const aService = (more: Service['spec']): Service => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'wardle', name: 'api' } },
  spec: { ports: [{ name: 'https', port: 7443 }], ...more },
})
const someEndpoints = (subsets: Endpoints['subsets']): Endpoints => ({
  ...{ apiVersion: 'v1', kind: 'Endpoints', metadata: { namespace: 'wardle', name: 'api' } },
  ...(subsets && { subsets }),
})
const ready = someEndpoints([{ addresses: [{ ip: '10.244.1.2' }], ports: [{ name: 'https', port: 8443 }] }])

const unready = someEndpoints([{ addresses: [], ports: [{ name: 'https', port: 8443 }] }])
const ofMetrics = someEndpoints([{ addresses: [{ ip: '10.244.1.2' }], ports: [{ name: 'metrics', port: 8443 }] }])
const nameless = someEndpoints([{ addresses: [{ ip: '10.244.1.2' }], ports: [{ port: 8443 }] }])

test('a server is not asked without its Service, the port of it, or a ready endpoint of that port', async (t) => {
  const place = 'service/api in "wardle"'
  const noAddresses = `endpoints for ${place} have no addresses with port name "https"`
  for (const [what, service, endpoints, reason, message] of [
    ['all are there', aService({}), ready, undefined, undefined],
    ['no Service', undefined, ready, 'ServiceNotFound', `${place} is not present`],
    ['a name elsewhere', aService({ type: 'ExternalName' }), undefined, undefined, undefined],
    ['no ports', aService({ ports: [] }), ready, 'ServicePortError', `${place} is not listening on port 7443`],
    [
      'another port',
      aService({ ports: [{ port: 443 }] }),
      ready,
      'ServicePortError',
      `${place} is not listening on port 7443`,
    ],
    ['no Endpoints', aService({}), undefined, 'EndpointsNotFound', `cannot find endpoints for ${place}`],
    ['no subsets', aService({}), someEndpoints(undefined), 'MissingEndpoints', noAddresses],
    ['no address that is ready', aService({}), unready, 'MissingEndpoints', noAddresses],
    ['another port of the endpoints', aService({}), ofMetrics, 'MissingEndpoints', noAddresses],
    ['a port without a name', aService({ ports: [{ port: 7443 }] }), nameless, undefined, undefined],
  ] as const) {
    const problem = serviceProblem({ spec }, service, endpoints)
    t.same(problem, reason && { status: 'False', reason, message }, what)
  }
})

test('an APIService that names no port is asked on 443', async (t) => {
  const plain = { spec: { ...spec, service: { namespace: 'wardle', name: 'api' } } }
  t.equal(serviceProblem(plain, aService({ ports: [{ name: 'https', port: 443 }] }), ready), undefined)
})

const passed: Availability = { status: 'True', reason: 'Passed', message: 'all checks passed' }
const failed: Availability = { status: 'False', reason: 'FailedDiscoveryCheck', message: 'bad status: 500' }
const missing: Availability = { status: 'False', reason: 'ServiceNotFound', message: 'service is not present' }
const now = '2026-11-30T05:00:00Z'

test('what was found is written where it changes the status, and a server that fails is asked sooner', async (t) => {
  const first = afterCheck(anApiService(), anApiService(), passed, now)
  t.equal(first.requeueAfterMs, 30_000)
  t.match(first.write, {
    metadata: { name: 'v1.wardle.example.com', resourceVersion: '1' },
    status: { conditions: [{ type: 'Available', ...passed, lastTransitionTime: now }] },
  })
  const written = anApiService({ status: first.write?.status })
  t.same(afterCheck(written, written, passed, '2026-11-30T05:00:30Z'), { requeueAfterMs: 30_000 }, 'the same again')
  t.match(afterCheck(written, written, failed, now), { requeueAfterMs: 5_000, write: { spec } })
  t.match(afterCheck(written, written, missing, now), { requeueAfterMs: 30_000, write: { spec } })
})

test('nothing is written of an APIService that has changed or gone meanwhile', async (t) => {
  const moved = anApiService({ spec: { ...spec, service: { namespace: 'wardle', name: 'other' } } })
  t.same(afterCheck(anApiService(), moved, failed, now), { requeueAfterMs: againMs })
  t.same(afterCheck(anApiService(), undefined, failed, now), {})
})
