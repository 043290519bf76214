import { test } from 'tap'
import type {
  AutoscalerSpec,
  AutoscalerStatus,
  HorizontalPodAutoscaler,
  MetricSpec,
  ScalingRules,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import { problemText } from '../../../../api/problem.ts'
import { autoscalerChangeProblems, autoscalerStatusProblems, newAutoscalerProblems } from './autoscaler-problems.ts'

const autoscaler = (spec: AutoscalerSpec = {}, status: AutoscalerStatus = {}): HorizontalPodAutoscaler => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'web' },
  spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 5, ...spec },
  status,
})
const problems = (spec: AutoscalerSpec) => newAutoscalerProblems(autoscaler(spec)).map(problemText)
const ofMetric = (metric: MetricSpec) => problems({ metrics: [metric] })
const at = 'spec.metrics[0]'
const metric = { name: 'rps' }
const target = { type: 'AverageValue', averageValue: '1' }
const object = { metric, describedObject: { kind: 'Service', name: 'web' }, target: { type: 'Value', value: '1' } }

test('an autoscaler of every kind of metric is right', async (t) => {
  const metrics: readonly MetricSpec[] = [
    { type: 'Object', object },
    { type: 'External', external: { metric, target } },
    { type: 'Pods', pods: { metric, target } },
    { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 1 } } },
    { type: 'ContainerResource', containerResource: { name: 'cpu', container: 'main', target } },
    { type: 'ContainerResource', containerResource: { name: 'hugepages-2Mi', container: 'main', target } },
    { type: 'ContainerResource', containerResource: { name: 'example.com/camera', container: 'main', target } },
  ]
  t.same(problems({ minReplicas: 1, maxReplicas: 1, metrics }), [])
  t.same(problems({ minReplicas: 5, maxReplicas: 2 ** 31 - 1 }), [])
})

test('the numbers of replicas have bounds, and what is scaled needs a name', async (t) => {
  t.same(problems({ maxReplicas: undefined, minReplicas: 0, scaleTargetRef: {} }), [
    'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
    'spec.maxReplicas: Invalid value: 0: must be greater than 0',
    'spec.scaleTargetRef.kind: Required value',
    'spec.scaleTargetRef.name: Required value',
    'spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas',
  ])
  t.same(problems({ minReplicas: 6, scaleTargetRef: { kind: 'a/b', name: '..' } }), [
    'spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`',
    `spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain '/'`,
    `spec.scaleTargetRef.name: Invalid value: "..": may not be '..'`,
  ])
  t.same(problems({ maxReplicas: 2 ** 31 }), [
    'spec.maxReplicas: Invalid value: 2147483648: must be less than or equal to 2147483647',
  ])
})

test('an autoscaler that scales to zero already may go on to, by a metric that is not of its pods', async (t) => {
  const changed = (old: number, now: number, ...metrics: MetricSpec[]) =>
    autoscalerChangeProblems(autoscaler({ minReplicas: old }), autoscaler({ minReplicas: now, metrics })).map(
      problemText,
    )
  const external = { type: 'External', external: { metric, target } }
  t.same(changed(0, 0, external), [])
  t.same(changed(0, 0, { type: 'Object', object }), [])
  t.same(changed(0, 0, { type: 'Pods', pods: { metric, target } }), [
    'spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas',
  ])
  t.same(changed(0, -1, external), ['spec.minReplicas: Invalid value: -1: must be greater than or equal to 0'])
  t.same(changed(1, 0, external), ['spec.minReplicas: Invalid value: 0: must be greater than or equal to 1'])
})

test('a status counts from zero', async (t) => {
  const status = (given: AutoscalerStatus) => autoscalerStatusProblems(autoscaler({}, given)).map(problemText)
  t.same(status({ currentReplicas: 0, desiredReplicas: 0 }), [])
  t.same(status({ currentReplicas: -1, desiredReplicas: -2 }), [
    'status.currentReplicas: Invalid value: -1: must be greater than or equal to 0',
    'status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0',
  ])
})

test('a metric has a known type and the source of that type only', async (t) => {
  const types = '"ContainerResource", "External", "Object", "Pods", "Resource"'
  t.same(ofMetric({}), [
    'spec.metrics[0].type: Required value: must specify a metric source type',
    `spec.metrics[0].type: Unsupported value: "": supported values: ${types}`,
    `spec.metrics[0].type: Unsupported value: "": supported values: ${types}`,
  ])
  t.same(ofMetric({ type: 'Custom', pods: { metric, target } }), [
    ...[1, 2].map(() => `${at}.type: Unsupported value: "Custom": supported values: ${types}`),
  ])
  t.same(ofMetric({ type: 'Pods', resource: { name: 'cpu', target } }), [
    `${at}.pods: Required value: must populate information for the given metric source`,
  ])
  t.same(ofMetric({ type: 'Pods', resource: { name: 'cpu', target }, pods: { metric, target } }), [
    `${at}.resource: Forbidden: must populate the given metric source only`,
  ])
  t.same(ofMetric({ type: 'Object' }), [
    `${at}.object: Required value: must populate information for the given metric source`,
  ])
  t.same(
    ofMetric({
      type: 'Custom',
      object,
      external: {},
      pods: {},
      resource: {},
      containerResource: {},
    }).filter((text) => text.includes('Forbidden')),
    ['object', 'external', 'pods', 'resource', 'containerResource'].map(
      (source) => `${at}.${source}: Forbidden: must populate the given metric source only`,
    ),
    'only the first one is read',
  )
})

test('a resource has a name and one target', async (t) => {
  t.same(ofMetric({ type: 'Resource', resource: { target: { type: 'X', averageValue: '-1', value: '0' } } }), [
    `${at}.resource.name: Required value: must specify a resource name`,
    `${at}.resource.target.type: Invalid value: "X": must be either Utilization, Value, or AverageValue`,
    `${at}.resource.target.value: Invalid value: "0": must be positive`,
    `${at}.resource.target.averageValue: Invalid value: "-1": must be positive`,
  ])
  t.same(ofMetric({ type: 'Resource', resource: { name: 'cpu', target: {} } }), [
    `${at}.resource.target.type: Required value: must specify a metric target type`,
    `${at}.resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue`,
    `${at}.resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization`,
  ])
  t.same(ofMetric({ type: 'Resource', resource: { name: 'cpu', target: { ...target, averageUtilization: 0 } } }), [
    `${at}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0`,
    `${at}.resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization`,
  ])
  const huge = { type: 'Utilization', averageUtilization: 2 ** 31 }
  t.same(ofMetric({ type: 'Resource', resource: { name: 'cpu', target: huge } }), [
    `${at}.resource.target.averageUtilization: Invalid value: 2147483648: must be less than or equal to 2147483647`,
  ])
})

test('the resource of a container has the name of a container and one target', async (t) => {
  const of = (containerResource: MetricSpec['containerResource']) =>
    ofMetric({ type: 'ContainerResource', containerResource })
  t.same(of({}), [
    `${at}.containerResource.name: Required value: must specify a resource name`,
    `${at}.containerResource.container: Required value: must specify a container`,
    `${at}.containerResource.target.type: Required value: must specify a metric target type`,
    `${at}.containerResource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue`,
    `${at}.containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization`,
  ])
  t.match(ofMetric({ type: 'ContainerResource', containerResource: { name: 'x', container: '_', target } }), [
    `${at}.containerResource.name: Invalid value: "x": must be a standard resource type or fully qualified`,
    `${at}.containerResource.name: Invalid value: "x": must be a standard resource for containers`,
    new RegExp(`^${at.replace(/[[\]]/g, '.')}.containerResource.container: Invalid value: "_"`),
  ])
  t.same(of({ name: 'requests.example.com/camera', container: 'main', target }), [
    `${at}.containerResource.name: Invalid value: "requests.example.com/camera": doesn't follow extended resource name standard`,
  ])
  t.same(of({ name: 'cpu', container: 'main', target: { ...target, averageUtilization: 50 } }), [
    `${at}.containerResource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization`,
  ])
})

test('a metric that no container has is named, and has a target of its kind', async (t) => {
  t.same(ofMetric({ type: 'External', external: { target: { type: 'Value', value: '1', averageValue: '1' } } }), [
    `${at}.external.metric.name: Required value: must specify a metric name`,
    `${at}.external.target.value: Forbidden: may not set both a target value for metric and a per-pod target`,
  ])
  t.same(ofMetric({ type: 'Object', object: { metric, target: { type: 'Value' } } }), [
    `${at}.object.describedObject.kind: Required value`,
    `${at}.object.describedObject.name: Required value`,
    `${at}.object.target.averageValue: Required value: must set either a target value or averageValue`,
  ])
  t.same(ofMetric({ type: 'Pods', pods: { metric, target: { type: 'Value', value: '1' } } }), [
    `${at}.pods.target.averageValue: Required value: must specify a positive target averageValue`,
  ])
  t.same(ofMetric({ type: 'External', external: { metric: { name: 'a%b' }, target: { type: 'Value' } } }), [
    `${at}.external.metric.name: Invalid value: "a%b": may not contain '%'`,
    `${at}.external.target.averageValue: Required value: must set either a target value for metric or a per-pod target`,
  ])
})

test('rules of a behavior are checked', async (t) => {
  const rules = (scaleUp: ScalingRules) =>
    problems({ behavior: { scaleUp } }).map((text) => text.replace('spec.behavior.scaleUp.', ''))
  t.same(rules({ stabilizationWindowSeconds: -1, selectPolicy: 'Most', policies: [] }), [
    'stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero',
    'selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"',
    'policies: Required value: must specify at least one Policy',
  ])
  t.same(rules({ stabilizationWindowSeconds: 3601, policies: [{ type: 'X' }] }), [
    'stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600',
    'policies[0].type: Unsupported value: "X": supported values: "Percent", "Pods"',
    'policies[0].value: Invalid value: 0: must be greater than zero',
    'policies[0].periodSeconds: Invalid value: 0: must be greater than zero',
  ])
  t.same(rules({ policies: [{ type: 'Pods', value: 1, periodSeconds: 1801 }] }), [
    'policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
  ])
  const policies = [
    { type: 'Pods', value: 1, periodSeconds: 1 },
    { type: 'Percent', value: 2 ** 31 - 1, periodSeconds: 1800 },
  ]
  for (const stabilizationWindowSeconds of [0, 3600])
    t.same(rules({ stabilizationWindowSeconds, selectPolicy: 'Disabled', policies }), [])
  t.same(rules({ policies: [{ type: 'Pods', value: 2 ** 31, periodSeconds: 1 }] }), [
    'policies[0].value: Invalid value: 2147483648: must be less than or equal to 2147483647',
  ])
  t.same(problems({ behavior: { scaleDown: {} } }), [
    'spec.behavior.scaleDown.policies: Required value: must specify at least one Policy',
  ])
})
