import { test } from 'tap'
import type { MetricSpec, MetricStatus } from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { MetricSpecV1, MetricStatusV1 } from '../../../../api/autoscaling/horizontal-pod-autoscaler-v1.ts'
import { metricSpecOfV1, metricSpecV1Of, metricStatusOfV1, metricStatusV1Of } from './metrics-v1.ts'

const selector = { matchLabels: { app: 'web' } }
const metric = { name: 'rps', selector }
const ofMetric = { metricName: 'rps', selector }
const ofExternal = { metricName: 'rps', metricSelector: selector }
const service = { apiVersion: 'v1', kind: 'Service', name: 'web' }
const [value, averageValue] = ['10', '500m']
const average = { type: 'AverageValue', averageValue }
const whole = { type: 'Value', value }
const utilization = { type: 'Utilization', averageUtilization: 60 }
const container = { name: 'memory', container: 'main' }

test('the target of every kind of metric is written as version 1 has it, and read back', async (t) => {
  const object = { metric, describedObject: service }
  const objectV1 = { ...ofMetric, target: service }
  const forms: readonly (readonly [MetricSpec, MetricSpecV1])[] = [
    [
      { type: 'Object', object: { ...object, target: whole } },
      { type: 'Object', object: { ...objectV1, targetValue: value } },
    ],
    [
      { type: 'Object', object: { ...object, target: average } },
      { type: 'Object', object: { ...objectV1, targetValue: '0', averageValue } },
    ],
    [
      { type: 'Pods', pods: { metric, target: average } },
      { type: 'Pods', pods: { ...ofMetric, targetAverageValue: averageValue } },
    ],
    [
      { type: 'Resource', resource: { name: 'cpu', target: average } },
      { type: 'Resource', resource: { name: 'cpu', targetAverageValue: averageValue } },
    ],
    [
      { type: 'Resource', resource: { name: 'cpu', target: utilization } },
      { type: 'Resource', resource: { name: 'cpu', targetAverageUtilization: 60 } },
    ],
    [
      { type: 'ContainerResource', containerResource: { ...container, target: average } },
      { type: 'ContainerResource', containerResource: { ...container, targetAverageValue: averageValue } },
    ],
    [
      { type: 'ContainerResource', containerResource: { ...container, target: utilization } },
      { type: 'ContainerResource', containerResource: { ...container, targetAverageUtilization: 60 } },
    ],
    [
      { type: 'External', external: { metric, target: whole } },
      { type: 'External', external: { ...ofExternal, targetValue: value } },
    ],
    [
      { type: 'External', external: { metric, target: average } },
      { type: 'External', external: { ...ofExternal, targetAverageValue: averageValue } },
    ],
  ]
  for (const [spec, specV1] of forms) {
    t.same(metricSpecV1Of(spec), specV1, JSON.stringify(spec))
    t.same(metricSpecOfV1(specV1), spec, JSON.stringify(specV1))
  }
})

test('what an author left out of a target has the zero value of Go where version 1 cannot leave it out', async (t) => {
  const target = {}
  const forms: readonly (readonly [MetricSpec, MetricSpecV1])[] = [
    [{}, { type: '' }],
    [
      { type: 'Object', object: { target } },
      { type: 'Object', object: { target: {}, metricName: '', targetValue: '0' } },
    ],
    [
      { type: 'Pods', pods: { target } },
      { type: 'Pods', pods: { metricName: '', targetAverageValue: '0' } },
    ],
    [
      { type: 'Resource', resource: {} },
      { type: 'Resource', resource: { name: '' } },
    ],
    [
      { type: 'ContainerResource', containerResource: {} },
      { type: 'ContainerResource', containerResource: { name: '', container: '' } },
    ],
    [
      { type: 'External', external: {} },
      { type: 'External', external: { metricName: '' } },
    ],
  ]
  for (const [spec, specV1] of forms) t.same(metricSpecV1Of(spec), specV1, JSON.stringify(spec))
})

test('the type of a target follows from what an author of version 1 gave', async (t) => {
  const typeOf = ({ object, pods, resource, containerResource, external }: MetricSpec) =>
    (object ?? pods ?? resource ?? containerResource ?? external)?.target
  const targets: readonly (readonly [MetricSpecV1, object])[] = [
    [{ object: {} }, { type: 'Value', value: '0' }],
    [{ object: { targetValue: value, averageValue } }, { ...average, value }],
    [{ pods: {} }, { type: 'AverageValue', averageValue: '0' }],
    [{ resource: {} }, { type: 'AverageValue' }],
    [
      { resource: { targetAverageUtilization: 60, targetAverageValue: averageValue } },
      { ...utilization, averageValue },
    ],
    [{ containerResource: {} }, { type: 'AverageValue' }],
    [{ external: {} }, { type: 'AverageValue' }],
    [{ external: { targetValue: value, targetAverageValue: averageValue } }, { ...whole, averageValue }],
  ]
  for (const [specV1, target] of targets) t.same(typeOf(metricSpecOfV1(specV1)), target, JSON.stringify(specV1))
})

test('what is used of every kind of metric is written as version 1 has it, and read back', async (t) => {
  const object = { metric, describedObject: service }
  const objectV1 = { ...ofMetric, target: service }
  const both = { averageUtilization: 60, averageValue }
  const bothV1 = { currentAverageUtilization: 60, currentAverageValue: averageValue }
  const forms: readonly (readonly [MetricStatus, MetricStatusV1])[] = [
    [
      { type: 'Object', object: { ...object, current: { value } } },
      { type: 'Object', object: { ...objectV1, currentValue: value } },
    ],
    [
      { type: 'Object', object: { ...object, current: { averageValue } } },
      { type: 'Object', object: { ...objectV1, currentValue: '0', averageValue } },
    ],
    [
      { type: 'Object', object: { ...object, current: { value, averageValue } } },
      { type: 'Object', object: { ...objectV1, currentValue: value, averageValue } },
    ],
    [
      { type: 'Pods', pods: { metric, current: { averageValue } } },
      { type: 'Pods', pods: { ...ofMetric, currentAverageValue: averageValue } },
    ],
    [
      { type: 'Resource', resource: { name: 'cpu', current: both } },
      { type: 'Resource', resource: { name: 'cpu', ...bothV1 } },
    ],
    [
      { type: 'ContainerResource', containerResource: { ...container, current: both } },
      { type: 'ContainerResource', containerResource: { ...container, ...bothV1 } },
    ],
    [
      { type: 'External', external: { metric, current: { value } } },
      { type: 'External', external: { ...ofExternal, currentValue: value } },
    ],
    [
      { type: 'External', external: { metric, current: { averageValue } } },
      { type: 'External', external: { ...ofExternal, currentValue: '0', currentAverageValue: averageValue } },
    ],
  ]
  for (const [status, statusV1] of forms) {
    t.same(metricStatusV1Of(status), statusV1, JSON.stringify(status))
    t.same(metricStatusOfV1(statusV1), status, JSON.stringify(statusV1))
  }
})

test('a status without an amount has zero', async (t) => {
  const forms: readonly (readonly [MetricStatus, MetricStatusV1])[] = [
    [{}, { type: '' }],
    [{ object: {} }, { type: '', object: { target: {}, metricName: '', currentValue: '0' } }],
    [{ pods: {} }, { type: '', pods: { metricName: '', currentAverageValue: '0' } }],
    [{ resource: {} }, { type: '', resource: { name: '', currentAverageValue: '0' } }],
    [{ containerResource: {} }, { type: '', containerResource: { name: '', currentAverageValue: '0', container: '' } }],
    [{ external: {} }, { type: '', external: { metricName: '', currentValue: '0' } }],
  ]
  for (const [status, statusV1] of forms) t.same(metricStatusV1Of(status), statusV1, JSON.stringify(status))
  t.same(metricStatusOfV1({ object: {} }).object?.current, { value: '0' })
  t.same(metricStatusOfV1({ pods: {} }).pods?.current, { averageValue: '0' })
  t.same(metricStatusOfV1({ resource: {} }).resource?.current, { averageValue: '0' })
  t.same(metricStatusOfV1({ containerResource: {} }).containerResource?.current, { averageValue: '0' })
  t.same(metricStatusOfV1({ external: {} }).external?.current, { value: '0' })
  t.equal(metricStatusOfV1({}).type, '')
})
