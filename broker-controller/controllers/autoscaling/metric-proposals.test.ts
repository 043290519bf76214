import { test } from 'tap'
import type { MetricSpec } from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { Pod } from '../../../api/pod.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { type ProposalInput, proposeReplicas, type ReadUsage } from './metric-proposals.ts'
import { defaultCalculationSettings } from './replica-calculation.ts'

const nowMs = Date.parse('2026-01-01T01:00:00Z')
const Mi = 1024 * 1024 * 1000

function aPod(name: string): Pod {
  const resources = { requests: { cpu: '1', memory: '100Mi' } }
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: ['main', 'helper'].map((container) => ({ name: container, image: 'i', resources })) },
    status: {
      phase: 'Running',
      startTime: '2026-01-01T00:00:00Z',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }],
    },
  }
}
const used = (
  main: ReadUsage['containers'] extends ReadonlyMap<string, infer U> ? U : never,
  helper = main,
): ReadUsage => ({
  timestampMs: nowMs,
  windowMs: 10_000,
  containers: new Map([
    ['main', main],
    ['helper', helper],
  ]),
})
const resource = (name: string, averageUtilization: number): MetricSpec => ({
  type: 'Resource',
  resource: { name, target: { type: 'Utilization', averageUtilization } },
})
function proposed(metrics: readonly MetricSpec[], more: Partial<ProposalInput> = {}) {
  const usage = new Map([['a', used({ cpu: 800, memory: 50 * Mi }, { cpu: 200, memory: 50 * Mi })]])
  const input = { namespace: 'default', current: 1, metrics, pods: [aPod('a')], usage, nowMs, ...more }
  return finished(proposeReplicas(input, defaultCalculationSettings))
}

test('the metric that asks for most decides', async (t) => {
  const answer = proposed([resource('cpu', 25), resource('memory', 10)])
  t.same(answer, {
    replicas: 5,
    metric: 'memory resource utilization (percentage of request)',
    statuses: [
      { type: 'Resource', resource: { name: 'cpu', current: { averageValue: '1', averageUtilization: 50 } } },
      {
        type: 'Resource',
        resource: { name: 'memory', current: { averageValue: '104857600', averageUtilization: 50 } },
      },
    ],
    failures: [],
    problem: undefined,
  })
})

test('of metrics in any order the largest decides, and of equal ones the first', async (t) => {
  const metricOf = (...metrics: readonly MetricSpec[]) => {
    const { replicas, metric } = proposed(metrics)
    return [replicas, metric.split(' ')[0]]
  }
  t.same(metricOf(resource('memory', 10), resource('cpu', 25)), [5, 'memory'])
  t.same(metricOf(resource('cpu', 25), resource('memory', 25)), [2, 'cpu'])
  const none = { type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '9' } } }
  const idle = new Map([['a', used({ cpu: 0, memory: 0 })]])
  t.match(proposed([none], { usage: idle }), { replicas: 0, metric: 'cpu resource' })
})

test('replicas are removed where no metric is missing', async (t) => {
  const three = ['a', 'b', 'c']
  const usage = new Map(three.map((name) => [name, used({ cpu: 100, memory: Mi })]))
  t.match(proposed([resource('cpu', 20)], { current: 3, pods: three.map(aPod), usage }), { replicas: 2 })
})

test('an average is that of whole pods, or of one container', async (t) => {
  const target = { type: 'AverageValue', averageValue: '250m' }
  t.match(proposed([{ type: 'Resource', resource: { name: 'cpu', target } }]), {
    replicas: 4,
    metric: 'cpu resource',
    statuses: [{ resource: { name: 'cpu', current: { averageValue: '1' } } }],
  })
  const helper = { name: 'cpu', container: 'helper' }
  t.match(proposed([{ type: 'ContainerResource', containerResource: { ...helper, target } }]), {
    replicas: 1,
    statuses: [{ type: 'ContainerResource', containerResource: { ...helper, current: { averageValue: '200m' } } }],
  })
  const share = { type: 'Utilization', averageUtilization: 10 }
  t.match(proposed([{ type: 'ContainerResource', containerResource: { ...helper, target: share } }]), {
    replicas: 2,
    metric: 'cpu container resource utilization (percentage of request)',
    statuses: [{ containerResource: { current: { averageUtilization: 20 } } }],
  })
})

test('a metric that is missing is named as Kubernetes names it', async (t) => {
  const one = proposed([resource('cpu', 50)], { usage: new Map() })
  const message =
    'failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API'
  t.same(one, {
    replicas: undefined,
    metric: '',
    statuses: [{ type: '' }],
    failures: [{ reason: 'FailedGetResourceMetric', message }],
    problem: `invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ${message}`,
  })
  const target = { type: 'AverageValue', averageValue: '1' }
  const other: MetricSpec = { type: 'ContainerResource', containerResource: { name: 'cpu', container: 'x', target } }
  const failure =
    'failed to get cpu usage: unable to get metrics for resource cpu: failed to get container metrics: container x not present in metrics for pod default/a'
  t.match(proposed([other]), {
    failures: [{ reason: 'FailedGetContainerResourceMetric', message: failure }],
    problem: `invalid metrics (1 invalid out of 1), first error is: failed to get x container metric value: ${failure}`,
  })
  const half = new Map([['a', used({ cpu: 1 }, { memory: Mi })]])
  for (const name of ['cpu', 'memory']) {
    const [first] = proposed([resource(name, 50)], { usage: half }).failures
    t.match(first?.message, /did not receive metrics/, `${name} of one container is not that of the pod`)
  }
  const unknown = proposed([resource('ephemeral-storage', 50)])
  t.match(unknown.failures, [{ message: /^failed to get ephemeral-storage utilization: did not receive metrics/ }])
})

test('with a metric missing, replicas are added and never removed', async (t) => {
  const target = { type: 'AverageValue', averageValue: '1' }
  const missing: MetricSpec = { type: 'Pods', pods: { metric: { name: 'rps' }, target } }
  t.match(proposed([missing, resource('cpu', 25)]), {
    replicas: 2,
    statuses: [{ type: '' }, { type: 'Resource' }],
    problem: /^invalid metrics \(1 invalid out of 2\)/,
  })
  t.match(proposed([missing, resource('cpu', 50)]), { replicas: 1 }, 'as many as now')
  t.match(proposed([missing], { current: 0 }), { replicas: undefined })
  const fewer = proposed([missing, resource('cpu', 100)], { current: 3, pods: [aPod('a')] })
  t.match(fewer, { replicas: undefined, failures: [{ reason: 'FailedGetPodsMetric' }] })
})

test('a metric without a target, or of no known type, fails', async (t) => {
  const message = (spec: MetricSpec) => proposed([spec]).failures.map((one) => `${one.reason}: ${one.message}`)
  t.same(message({ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization' } } }), [
    'FailedGetResourceMetric: invalid resource metric source: neither an average utilization target nor an average value (usage) target was set',
  ])
  t.same(message({ type: 'Magic' }), ['InvalidMetricSourceType: unknown metric source type "Magic"'])
  t.same(message({}), ['InvalidMetricSourceType: unknown metric source type ""'])
  t.match(proposed([{ type: 'Magic' }]).problem, /first error is: unknown metric source type "Magic"$/)
  const object = [
    'FailedGetObjectMetric: invalid object metric source: neither a value target nor an average value target was set',
  ]
  t.same(message({ type: 'Object' }), object)
  const metric = { name: 'rps' }
  for (const target of [
    { type: 'Value', averageValue: '1' },
    { type: 'AverageValue', value: '1' },
    { type: 'AverageValue' },
  ]) {
    t.same(message({ type: 'Object', object: { metric, target } }), object)
  }
  t.match(message({ type: 'Object', object: { target: { type: 'Value', value: '1' } } }), [
    /: unable to get metric : {2}on default \//,
  ])
  t.match(message({ type: 'External' }), [/^FailedGetExternalMetric: unable to get external metric default\/\/nil: /])
  t.match(message({ type: 'Pods' }), [/^FailedGetPodsMetric: unable to get metric : /])
  t.match(message({ type: 'Pods', pods: {} }), [/^FailedGetPodsMetric: unable to get metric : /])
})

test('metrics of APIs that are not served fail with their own reason', async (t) => {
  const target = { type: 'AverageValue', averageValue: '1' }
  const metric = { name: 'rps' }
  const describedObject = { kind: 'Ingress', name: 'web' }
  const custom = 'no custom metrics API (custom.metrics.k8s.io) registered'
  const found = (spec: MetricSpec) => proposed([spec])
  t.same(found({ type: 'Pods', pods: { metric, target } }).failures, [
    {
      reason: 'FailedGetPodsMetric',
      message: `unable to get metric rps: unable to fetch metrics from custom metrics API: ${custom}`,
    },
  ])
  const object = `unable to get metric rps: Ingress on default web/unable to fetch metrics from custom metrics API: ${custom}`
  const perPod = found({ type: 'Object', object: { metric, target, describedObject } })
  t.same(perPod.failures, [{ reason: 'FailedGetObjectMetric', message: object }])
  t.match(perPod.problem, /failed to get object metric value: failed to get rps object metric: unable/)
  const whole = { type: 'Value', value: '1' }
  t.match(found({ type: 'Object', object: { metric, target: whole, describedObject } }), {
    failures: [{ message: object }],
    problem: /first error is: failed to get object metric value: unable/,
  })
  t.match(found({ type: 'Object', object: { metric, target: { type: 'Value' }, describedObject } }).failures, [
    { message: 'invalid object metric source: neither a value target nor an average value target was set' },
  ])
  const selector = {
    matchLabels: { b: '2', a: '1' },
    matchExpressions: [{ key: 'c', operator: 'In', values: ['x', 'y'] }],
  }
  const missing =
    'unable to fetch metrics from external metrics API: the server could not find the requested resource (get rps.external.metrics.k8s.io)'
  const external = found({ type: 'External', external: { metric: { ...metric, selector }, target } })
  const labels = 'map[string]string{a: 1,b: 2,}'
  const expressions = '[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},}'
  t.same(external.failures, [
    {
      reason: 'FailedGetExternalMetric',
      message: `unable to get external metric default/rps/&LabelSelector{MatchLabels:${labels},MatchExpressions:${expressions},}: ${missing}`,
    },
  ])
  t.match(external.problem, /failed to get rps external metric value: failed to get rps external metric: unable/)
  const plain = found({ type: 'External', external: { metric, target: whole } })
  t.match(plain.failures, [{ message: `unable to get external metric default/rps/nil: ${missing}` }])
  t.match(plain.problem, /failed to get rps external metric value: failed to get external metric rps: unable/)
})
