import { test } from 'tap'
import type { Container, Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import {
  asksOfNode,
  type DownwardSources,
  fieldText,
  fieldValue,
  type ResourceFieldRef,
  resourceValue,
} from './downward.ts'

const noSources: DownwardSources = { hostIP: undefined, podIP: undefined, allocatable: {} }
const main: Container = { name: 'main', image: 'app:1' }

test('variables have the words of the pod that Kubernetes names, and no others', async (t) => {
  const pod = aPod({
    ...{ name: 'web', namespace: 'shop', uid: 'u-1', nodeName: 'pi-01', spec: { serviceAccountName: 'seller' } },
    ...{ labels: { app: 'shop', 'example.com/tier': 'front' }, annotations: { "it's": 'a "note"' } },
  })
  const values: readonly (readonly [string, string])[] = [
    ['metadata.name', 'web'],
    ['metadata.namespace', 'shop'],
    ['metadata.uid', 'u-1'],
    ["metadata.labels['app']", 'shop'],
    ["metadata.labels['example.com/tier']", 'front'],
    ["metadata.labels['absent']", ''],
    ["metadata.annotations['it's']", 'a "note"'],
    ["metadata.annotations['app']", ''],
    ['spec.nodeName', 'pi-01'],
    ['spec.serviceAccountName', 'seller'],
    ['status.hostIP', ''],
    ['status.podIP', ''],
  ]
  for (const [path, value] of values) t.same(fieldValue(pod, path, noSources), { value }, path)
  for (const path of ['metadata.labels', 'metadata.labels[app]', 'spec.priority', 'status.phase', ''])
    t.same(fieldValue(pod, path, noSources), { missing: `unsupported fieldPath: ${path}` })
  const bare: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: {}, spec: { containers: [] } }
  t.same(fieldValue(bare, 'metadata.namespace', noSources), { value: 'default' })
  t.same(fieldValue(bare, "metadata.labels['app']", noSources), { value: '' })
  t.same(fieldValue(bare, 'spec.nodeName', noSources), { value: '' })
})

test('the addresses of a machine with both IP families are joined by a comma, and a pod on its network has them', async (t) => {
  const sources = { hostIP: '192.0.2.1', otherHostIP: '2001:db8::1', podIP: '10.1.0.5', allocatable: {} }
  const value = (path: string, hostNetwork: boolean) => fieldValue(aPod({ spec: { hostNetwork } }), path, sources)
  for (const hostNetwork of [true, false]) {
    t.same(value('status.hostIPs', hostNetwork), { value: '192.0.2.1,2001:db8::1' })
    t.same(value('status.hostIP', hostNetwork), { value: '192.0.2.1' })
  }
  t.same(value('status.podIPs', true), { value: '192.0.2.1,2001:db8::1' })
  t.same(value('status.podIP', true), { value: '192.0.2.1' })
  t.same(value('status.podIPs', false), { value: '10.1.0.5' })
})

test('the addresses of a pod with both IP families are joined by a comma, in variables and in files', async (t) => {
  const sources = { hostIP: '192.0.2.1', podIP: '10.1.0.5', otherPodIP: 'fd00::5', allocatable: {} }
  const own = aPod({ name: 'web' })
  for (const read of [fieldValue, fieldText]) {
    t.same(read(own, 'status.podIPs', sources), { value: '10.1.0.5,fd00::5' })
    t.same(read(own, 'status.podIP', sources), { value: '10.1.0.5' })
    t.same(read(own, 'status.hostIPs', sources), { value: '192.0.2.1' }, 'the machine has one family only')
    const dual = { ...sources, otherHostIP: '2001:db8::1' }
    t.same(read(own, 'status.hostIPs', dual), { value: '192.0.2.1,2001:db8::1' })
    t.same(read(own, 'status.podIPs', dual), { value: '10.1.0.5,fd00::5' })
    const onHost = aPod({ name: 'web', spec: { hostNetwork: true } })
    t.same(read(onHost, 'status.podIPs', dual), { value: '192.0.2.1,2001:db8::1' }, 'those of the machine')
    t.same(read(onHost, 'status.podIPs', sources), { value: '192.0.2.1' })
    const unknown = { ...sources, hostIP: undefined, podIP: undefined, otherPodIP: undefined }
    t.same(read(own, 'status.podIPs', unknown), { value: '' })
    t.same(read(own, 'status.hostIPs', unknown), { value: '' })
  }
})

test('a file has all labels or annotations, sorted and quoted as Go does', async (t) => {
  const text = (annotations: { readonly [key: string]: string }) =>
    fieldText(aPod({ annotations }), 'metadata.annotations', noSources)
  t.same(fieldText(aPod({ labels: { b: '2', a: '1' } }), 'metadata.labels', noSources), { value: 'a="1"\nb="2"' })
  t.same(fieldText(aPod(), 'metadata.labels', noSources), { value: '' })
  t.same(text({}), { value: '' })
  t.same(text({ json: '{"a": "\\"}\n' }), { value: 'json="{\\"a\\": \\"\\\\\\"}\\n"' })
  t.same(text({ plain: 'é 🍓' }), { value: 'plain="é 🍓"' })
  t.same(text({ odd: '\x07\v\x1b\x7f\u00a0\u2028\u{e0001}' }), {
    value: String.raw`odd="\a\v\x1b\x7f\u00a0\u2028\U000e0001"`,
  })
  t.same(fieldText(aPod({ name: 'web' }), 'metadata.name', noSources), { value: 'web' }, 'others as in variables')
})

test('resources are counted in units of the divisor, rounded up', async (t) => {
  const resources = {
    requests: { cpu: '250m', memory: '100M', 'hugepages-2Mi': '4Mi' },
    limits: { cpu: '1500m', memory: '128Mi', 'ephemeral-storage': '1Gi', 'hugepages-2Mi': '4Mi' },
  }
  const pod = aPod({ containers: [{ ...main, resources }] })
  const cases: readonly (readonly [string, string | number | undefined, string])[] = [
    ['limits.cpu', undefined, '2'],
    ['limits.cpu', '1m', '1500'],
    ['limits.cpu', '0', '2'],
    ['limits.cpu', 1, '2'],
    ['requests.cpu', undefined, '1'],
    ['requests.cpu', '100m', '3'],
    ['limits.memory', undefined, '134217728'],
    ['limits.memory', '1Mi', '128'],
    ['requests.memory', '1Mi', '96'],
    ['limits.ephemeral-storage', '1Gi', '1'],
    ['requests.ephemeral-storage', '1Mi', '1024'],
    ['limits.hugepages-2Mi', '2Mi', '2'],
    ['requests.hugepages-2Mi', undefined, '4194304'],
  ]
  for (const [resource, divisor, value] of cases) {
    const ref: ResourceFieldRef = { resource, ...(divisor !== undefined && { divisor }) }
    t.same(resourceValue(pod, ref, 'main', noSources), { value }, `${resource} by ${divisor}`)
  }
  for (const resource of ['cpu', 'limits.pods', 'requests.hugepages-', 'limits'])
    t.same(resourceValue(pod, { resource }, 'main', noSources), {
      missing: `unsupported container resource : ${resource}`,
    })
})

test('a container without a limit may use what the node has, and asks for nothing', async (t) => {
  const sources = { ...noSources, allocatable: { cpu: '3500m', memory: '3Gi', 'hugepages-2Mi': '64Mi' } }
  const value = (resource: string, resources: Container['resources'] = {}, from: DownwardSources = sources) =>
    resourceValue(aPod({ containers: [{ ...main, resources }] }), { resource }, 'main', from)
  t.same(value('limits.cpu'), { value: '4' })
  t.same(value('limits.memory'), { value: String(3 * 1024 ** 3) })
  t.same(value('limits.cpu', { limits: { cpu: '0' } }), { value: '4' }, 'a limit of 0 does not count')
  t.same(value('limits.hugepages-2Mi'), { value: '0' }, 'huge pages are not shared out')
  t.same(value('limits.ephemeral-storage'), { value: '0' }, 'the node does not report it')
  t.same([value('requests.cpu'), value('requests.memory')], [{ value: '0' }, { value: '0' }])
  t.same(value('limits.cpu', {}, noSources), { value: '0' })
})

test('the container is the named one, or else the one that asks', async (t) => {
  const withCPU = (name: string, cpu: string): Container => ({ ...main, name, resources: { limits: { cpu } } })
  const spec = { initContainers: [withCPU('first', '2')], ephemeralContainers: [{ name: 'look', image: 'app:1' }] }
  const pod = aPod({ containers: [withCPU('main', '1')], spec })
  const cpu = (containerName: string | undefined, own: string | undefined) => {
    const ref = { resource: 'limits.cpu', ...(containerName !== undefined && { containerName }) }
    return resourceValue(pod, ref, own, { ...noSources, allocatable: { cpu: '4' } })
  }
  t.same(
    [cpu(undefined, 'main'), cpu('', 'main'), cpu('first', 'main')].map((one) => 'value' in one && one.value),
    [...['1', '1', '2']],
  )
  t.same(cpu('main', undefined), { value: '1' })
  t.same(cpu(undefined, 'look'), { value: '4' }, 'one that was added later has no limits')
  t.same(cpu('other', 'main'), { missing: 'container other not found' })
  t.same(cpu(undefined, undefined), { missing: 'container  not found' })
})

test('a container waits for the node where a variable or a file refers to it', async (t) => {
  const asks = (fieldPath: string, hostNetwork = false) =>
    asksOfNode(aPod({ spec: { hostNetwork } }), {
      ...main,
      env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath } } }],
    })
  t.same(
    ['status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs'].map((path) => asks(path)),
    [...[true, true, false, false]],
  )
  t.same(
    ['status.podIP', 'status.podIPs', 'metadata.name'].map((path) => asks(path, true)),
    [true, true, false],
  )
  t.notOk(asksOfNode(aPod(), main))
  t.notOk(asksOfNode(aPod(), { ...main, env: [{ name: 'A', value: 'status.hostIP' }] }))
  const resourceFieldRef = { containerName: 'main', resource: 'limits.cpu' }
  t.ok(asksOfNode(aPod(), { ...main, env: [{ name: 'A', valueFrom: { resourceFieldRef } }] }))
  const inFile = (item: { fieldRef?: { fieldPath: string }; resourceFieldRef?: typeof resourceFieldRef }) => {
    const downwardAPI = { items: [{ path: 'file', ...item }] }
    const volumes = [
      { name: 'v', downwardAPI },
      { name: 'v', projected: { sources: [{}, { downwardAPI }] } },
    ]
    return volumes.map((volume) => asksOfNode(aPod({ spec: { volumes: [volume] } }), main))
  }
  t.same(inFile({ resourceFieldRef }), [true, true])
  t.same(inFile({ fieldRef: { fieldPath: 'metadata.name' } }), [false, false])
})
