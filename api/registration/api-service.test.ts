import { test } from 'tap'
import { type APIService, localAvailability, withAvailability } from './api-service.ts'
import { apiServiceProblems, apiServiceStatusProblems } from './api-service-problems.ts'

const spec = { group: 'wardle.example.com', version: 'v1', groupPriorityMinimum: 2000, versionPriority: 10 }
const named = (name: string, more: Partial<APIService['spec']> = {}): APIService => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name },
  spec: { ...spec, ...more },
})
const texts = (one: APIService) => apiServiceProblems(one).map(({ field, message }) => `${field}: ${message}`)
const service = { namespace: 'ns', name: 'api', port: 443 }

test('an APIService is named as its version and its group', (t) => {
  t.same(texts(named('v1.wardle.example.com')), [])
  t.same(texts(named('v1.wardle.example.com', { service })), [])
  t.same(texts(named('v1.other')), [
    'metadata.name: Invalid value: "v1.other": must be `spec.version+"."+spec.group`: "v1.wardle.example.com"',
  ])
  t.same(texts(named('v1.', { group: '' })), [], 'the core group')
  t.match(texts(named('v2.', { group: '', version: 'v2' })), [
    'spec.group: Required value: only v1 may have an empty group and it better be legacy kube',
  ])
  t.match(texts(named('v1.A', { group: 'A' })), [/^spec\.group: Invalid value: "A": must be lower case letters/])
  t.match(texts(named('V1.wardle.example.com', { version: 'V1' })), [/^spec\.version: Invalid value: "V1": a DNS-1035/])
  t.end()
})

test('priorities are within their bounds, which are 20000 and 1000', (t) => {
  const name = 'v1.wardle.example.com'
  t.same(texts(named(name, { groupPriorityMinimum: 20_000, versionPriority: 1_000 })), [])
  t.same(texts(named(name, { groupPriorityMinimum: 20_001, versionPriority: 1_001 })), [
    'spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000',
    'spec.versionPriority: Invalid value: 1001: must be positive and less than 1000',
  ])
  t.same(texts(named(name, { groupPriorityMinimum: 0, versionPriority: 0 })).length, 2)
  t.end()
})

test('only an APIService with a Service has settings of TLS, and one of the two', (t) => {
  const name = 'v1.wardle.example.com'
  t.same(texts(named(name, { caBundle: 'Cg==', insecureSkipTLSVerify: true })), [
    'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle',
    'spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify',
  ])
  t.same(texts(named(name, { service, caBundle: 'Cg==', insecureSkipTLSVerify: true })), [
    'spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present',
  ])
  t.same(texts(named(name, { service: { port: 70_000 } })), [
    'spec.service.namespace: Required value',
    'spec.service.name: Required value',
    'spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive',
  ])
  t.end()
})

test('a condition of the status is True, False or Unknown', (t) => {
  const conditions = [
    { type: 'Available', status: 'True' },
    { type: 'Odd', status: 'Maybe' },
  ]
  t.same(apiServiceStatusProblems({ ...named('v1.wardle.example.com'), status: { conditions } }), [
    {
      field: 'status.conditions[1].status',
      reason: 'FieldValueNotSupported',
      message: 'Unsupported value: "Maybe": supported values: "True", "False", "Unknown"',
    },
  ])
  t.end()
})

test('the time of the condition Available is that of its last change of status', (t) => {
  const [first, later] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']
  const failed = { status: 'False', reason: 'ServiceNotFound', message: 'gone' } as const
  const local = withAvailability(undefined, localAvailability, first)
  t.same(local.conditions, [{ type: 'Available', lastTransitionTime: first, ...localAvailability }])
  t.equal(withAvailability(local, localAvailability, later), local, 'nothing to write')
  const down = withAvailability(local, failed, later)
  t.match(down.conditions, [{ status: 'False', lastTransitionTime: later }])
  const other = withAvailability(down, { ...failed, reason: 'MissingEndpoints' }, first)
  t.match(other.conditions, [{ reason: 'MissingEndpoints', lastTransitionTime: later }])
  const mine = { type: 'Mine', status: 'True' }
  const both = withAvailability({ conditions: [mine, ...(down.conditions ?? [])] }, localAvailability, later)
  t.match(both.conditions, [mine, { type: 'Available', status: 'True' }], 'the conditions of others stay')
  t.end()
})
