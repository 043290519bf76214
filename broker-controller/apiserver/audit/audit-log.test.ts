import { test } from 'tap'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { ResourceRoute } from '../handlers/strategy.ts'
import { routeOf } from '../routes.ts'
import { type AuditedRequest, auditLog } from './audit-log.ts'

const stranger = { identity: { user: 'system:anonymous', groups: ['system:unauthenticated'] } }
const person = { identity: { user: 'ada', groups: ['system:authenticated'] } }

function aLog() {
  const lines: string[] = []
  const registry = metricsRegistry()
  const clock = fakeClock()
  const log = auditLog({ file: { append: (line) => void lines.push(line) }, clock, registry })
  const omitted = () => registry.samplesOf('bramble_audit_refusals_omitted_total')[0]?.value
  return { log, lines, clock, omitted }
}

function request(more: Partial<AuditedRequest> = {}): AuditedRequest {
  return {
    id: 'one',
    route: route('POST', '/api/v1/namespaces/default/pods'),
    sender: person,
    uri: '/',
    address: '192.0.2.1',
    userAgent: undefined,
    code: 201,
    body: undefined,
    receivedMs: 0,
    tookMs: 1,
    ...more,
  }
}

function route(method: string, path: string): ResourceRoute {
  const found = routeOf(method, path, new URLSearchParams(), builtInKinds)
  if (found.kind !== 'resource') throw new Error(`${path} is not an object`)
  return found
}

test('only requests that are audited have an ID, and each another', async (t) => {
  const { log } = aLog()
  const [first, second] = [log.idFor(request().route), log.idFor(request().route)]
  t.match(first, /^[0-9a-f-]{36}$/)
  t.not(first, second)
  t.equal(log.idFor(route('GET', '/api/v1/pods')), undefined)
})

test('a connection has a line when it begins and one when it ends', async (t) => {
  const { log, lines } = aLog()
  log.record({ ...request({ code: 101 }), isBeginning: true })
  log.record(request({ code: 101 }))
  t.same(
    lines.map((line) => JSON.parse(line).stage),
    ['ResponseStarted', 'ResponseComplete'],
  )
})

test('refused strangers cannot fill the log, from one address or from many', async (t) => {
  const { log, lines, clock, omitted } = aLog()
  for (let at = 0; at < 100; at++) log.record(request({ sender: stranger, code: 403 }))
  t.equal(lines.length, 60)
  t.equal(omitted(), 40)
  log.record(request({ sender: {}, code: 401, address: '192.0.2.2' }))
  t.equal(lines.length, 61, 'another address has its own')
  for (let at = 0; at < 500; at++) log.record(request({ sender: {}, code: 401, address: `198.51.100.${at}` }))
  t.equal(lines.length, 300)
  log.record(request({ code: 403 }))
  t.equal(lines.length, 301, 'a user that is authenticated is always written down')
  log.record(request({ sender: { ...stranger, decision: 'allow' }, code: 201 }))
  t.equal(lines.length, 302, 'and so is what a stranger was allowed')
  await clock.advance(10_000)
  log.record(request({ sender: stranger, code: 403 }))
  t.equal(lines.length, 303)
})

test('strangers that are sent away for their rate cannot fill the log either', async (t) => {
  const { log, lines } = aLog()
  for (let at = 0; at < 100; at++) log.record(request({ sender: {}, code: 429 }))
  t.equal(lines.length, 60)
  for (let at = 0; at < 100; at++) log.record(request({ code: 429 }))
  t.equal(lines.length, 160, 'a user that is authenticated is always written down')
})

test('Leases leave no lines', async (t) => {
  const { log, lines } = aLog()
  const leases = route('PUT', '/apis/coordination.k8s.io/v1/namespaces/default/leases/l')
  log.record(request({ route: leases, code: 200 }))
  t.same(lines, [])
  log.record(request({ route: leases, code: 403 }))
  t.equal(lines.length, 1)
})
