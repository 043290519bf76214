import { test } from 'tap'
import type { LimitRange, LimitRangeItem } from '../../../../api/limits/limit-range.ts'
import type { Container, Pod } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { limitViolation, withLimitDefaults } from './limit-ranger.ts'

const annotation = 'kubernetes.io/limit-ranger'
const range = (...limits: readonly LimitRangeItem[]): LimitRange => ({
  apiVersion: 'v1',
  kind: 'LimitRange',
  metadata: { name: 'mine', namespace: 'default' },
  spec: { limits },
})
const container = (resources: Container['resources'] = {}, name = 'main'): Container => ({ name, resources })
const violation = (item: LimitRangeItem, resources: Container['resources'], more: Partial<Pod['spec']> = {}) =>
  limitViolation(aPod({ spec: { containers: [container(resources)], ...more } }), [range(item)])

test('containers get the defaults that they do not state, and the pod names them', async (t) => {
  const item = { type: 'Container', default: { memory: '128Mi', cpu: '1' }, defaultRequest: { cpu: '100m' } }
  const pod = aPod({
    spec: { containers: [container({ limits: { memory: '64Mi' } })], initContainers: [container({}, 'setup')] },
    annotations: { mine: 'kept' },
  })
  const { metadata, spec } = withLimitDefaults(pod, [range(item)])
  t.same(spec.containers[0]?.resources, {
    limits: { memory: '64Mi', cpu: '1' },
    requests: { memory: '64Mi', cpu: '100m' },
  })
  t.same(spec.initContainers?.[0]?.resources, {
    limits: { memory: '128Mi', cpu: '1' },
    requests: { cpu: '100m' },
  })
  t.same(metadata.annotations, {
    mine: 'kept',
    [annotation]:
      'LimitRanger plugin set: cpu request for container main; cpu limit for container main; ' +
      'cpu request for init container setup; cpu, memory limit for init container setup',
  })
})

test('a limit without a request is a request, before the defaults', async (t) => {
  const item = { type: 'Container', defaultRequest: { cpu: '100m' } }
  const pod = aPod({ spec: { containers: [container({ limits: { cpu: '1' } })] } })
  t.equal(withLimitDefaults(pod, [range(item)]), pod, 'nothing is missing')
})

test('a pod that states everything, and one without a range for containers, stay as they are', async (t) => {
  const pod = aPod({ limits: { cpu: '1' }, requests: { cpu: '1' } })
  t.equal(withLimitDefaults(pod, [range({ type: 'Container', default: { cpu: '2' } })]), pod)
  t.equal(withLimitDefaults(pod, [range({ type: 'Pod', default: { memory: '2' } })]), pod)
  t.equal(withLimitDefaults(pod, [range(), { ...range(), spec: {} }]), pod)
})

test('of two ranges the first gives its defaults first', async (t) => {
  const both: readonly LimitRangeItem[] = [
    { type: 'Container', default: { cpu: '1' } },
    { type: 'Container', default: { cpu: '2', memory: '1Gi' } },
  ]
  const { spec } = withLimitDefaults(
    aPod(),
    both.map((item) => range(item)),
  )
  t.same(spec.containers[0]?.resources?.limits, { cpu: '1', memory: '1Gi' })
})

test('a container may not use less than the minimum', async (t) => {
  const item = { type: 'Container', min: { memory: '64Mi' } }
  const what = 'minimum memory usage per Container is 64Mi'
  t.equal(violation(item, {}), `${what}.  No request is specified`)
  t.equal(violation(item, { requests: { memory: '63Mi' } }), `${what}, but request is 63Mi`)
  t.equal(violation(item, { requests: { memory: '64Mi' } }), undefined)
  t.equal(violation(item, { requests: { memory: '64Mi' }, limits: { memory: '63Mi' } }), `${what}, but limit is 63Mi`)
  t.equal(violation(item, { requests: { memory: '64Mi' }, limits: { memory: '64Mi' } }), undefined)
})

test('a container may not use more than the maximum', async (t) => {
  const item = { type: 'Container', max: { cpu: '1' } }
  const what = 'maximum cpu usage per Container is 1'
  t.equal(violation(item, { requests: { cpu: '1' } }), `${what}.  No limit is specified`)
  t.equal(violation(item, { limits: { cpu: '1001m' } }), `${what}, but limit is 1001m`)
  t.equal(violation(item, { limits: { cpu: '1000m' } }), undefined)
  t.equal(violation(item, { limits: { cpu: '1' }, requests: { cpu: '2' } }), `${what}, but request is 2`)
  t.equal(violation(item, { limits: { cpu: '1' }, requests: { cpu: '1' } }), undefined)
})

test('a limit may be so many times a request', async (t) => {
  const item = { type: 'Container', maxLimitRequestRatio: { cpu: '2' } }
  const what = 'cpu max limit to request ratio per Container is 2'
  t.equal(violation(item, { limits: { cpu: '1' } }), `${what}, but no request is specified or request is 0`)
  const noRequest = { requests: { cpu: '0' }, limits: { cpu: '1' } }
  t.equal(violation(item, noRequest), `${what}, but no request is specified or request is 0`)
  t.equal(violation(item, { requests: { cpu: '1' } }), `${what}, but no limit is specified or limit is 0`)
  const much = { requests: { cpu: '400m' }, limits: { cpu: '1' } }
  t.equal(violation(item, much), `${what}, but provided ratio is 2.500000`)
  t.equal(violation(item, { requests: { cpu: '500m' }, limits: { cpu: '1' } }), undefined)
})

test('the containers of a pod are also bounded together, and init containers each', async (t) => {
  const cpu = (amount: string) => ({ requests: { cpu: amount }, limits: { cpu: amount } })
  const item = { type: 'Pod', max: { cpu: '1' } }
  const two = { containers: [container(cpu('600m')), container(cpu('500m'), 'other')] }
  t.equal(violation(item, {}, two), 'maximum cpu usage per Pod is 1, but limit is 1100m')
  t.equal(violation({ ...item, type: 'Container' }, {}, two), undefined)
  const init = { initContainers: [container(cpu('2'), 'setup')] }
  t.equal(violation(item, cpu('1'), init), 'maximum cpu usage per Pod is 1, but limit is 2')
  t.match(violation({ ...item, type: 'Container' }, cpu('1'), init), 'but limit is 2')
  t.equal(violation({ ...item, type: 'PersistentVolumeClaim' }, cpu('3')), undefined)
})

test('several violations of one range are named together, each once; the first range decides', async (t) => {
  const item = { type: 'Container', min: { cpu: '1', memory: '1Gi' } }
  const pod = aPod({ spec: { containers: [container(), container({}, 'other')] } })
  const both =
    '[minimum cpu usage per Container is 1.  No request is specified, ' +
    'minimum memory usage per Container is 1Gi.  No request is specified]'
  t.equal(limitViolation(pod, [range(item), range({ type: 'Container', max: { cpu: '1' } })]), both)
  t.equal(limitViolation(pod, [range({ type: 'Container', min: {} })]), undefined)
  t.equal(limitViolation(pod, []), undefined)
})

test('a pod with many containers beside ranges with many amounts is refused before they are multiplied', async (t) => {
  const amounts = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`example.com/r${index}`, '1']))
  const of = (count: number) =>
    aPod({ spec: { containers: Array.from({ length: count }, (_, index) => container({}, `c${index}`)) } })
  const ranges = [range({ type: 'Container', default: amounts }), range({ type: 'Container', max: amounts })]
  t.equal(withLimitDefaults(of(16), ranges).spec.containers.length, 16)
  t.throws(() => withLimitDefaults(of(17), ranges), /more than 16384 fields and items/)
})
