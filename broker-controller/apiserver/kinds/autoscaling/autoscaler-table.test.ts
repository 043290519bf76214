import { test } from 'tap'
import type { AutoscalerSpec, MetricSpec, MetricStatus } from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import { autoscalerTable } from './autoscaler-table.ts'

const born = '2026-01-01T00:00:00Z'
const cells = (spec: AutoscalerSpec, currentMetrics: readonly MetricStatus[] = []) => {
  const metadata = { name: 'web', creationTimestamp: born }
  const kind = { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' } as const
  return autoscalerTable.cells({ ...kind, metadata, spec, status: { currentMetrics } }, Date.parse(born) + 60_000)
}
const targets = (metrics: readonly MetricSpec[], statuses: readonly MetricStatus[] = []) =>
  cells({ metrics }, statuses)[2]

test('an autoscaler without a minimum, metrics and a status shows that', async (t) => {
  t.same(cells({}), ['web', '/', '<none>', '<unset>', 0, 0, '60s'])
})

test('every kind of metric shows what is used and what is wanted', async (t) => {
  const whole = { target: { value: '2000' } }
  const average = { target: { averageValue: '500m' } }
  const percent = { target: { averageUtilization: 80 } }
  const used = { current: { value: '1500', averageValue: '250m', averageUtilization: 33 } }
  const rows: readonly (readonly [MetricSpec, MetricStatus, string])[] = [
    [{ type: 'External', external: whole }, {}, '<unknown>/2k'],
    [{ type: 'External', external: whole }, { external: used }, '1500/2k'],
    [{ type: 'External', external: whole }, { external: {} }, '<nil>/2k'],
    [{ type: 'External', external: average }, {}, '<unknown>/500m (avg)'],
    [{ type: 'External', external: average }, { external: { current: { value: '1' } } }, '<unknown>/500m (avg)'],
    [{ type: 'External', external: average }, { external: used }, '250m/500m (avg)'],
    [{ type: 'Object', object: whole }, {}, '<unknown>/2k'],
    [{ type: 'Object', object: whole }, { object: used }, '1500/2k'],
    [{ type: 'Object', object: average }, { object: used }, '250m/500m (avg)'],
    [{ type: 'Pods', pods: average }, {}, '<unknown>/500m'],
    [{ type: 'Pods', pods: average }, { pods: used }, '250m/500m'],
    [{ type: 'Resource', resource: { name: 'cpu', ...average } }, {}, 'cpu: <unknown>/500m'],
    [{ type: 'Resource', resource: { name: 'cpu', ...average } }, { resource: used }, 'cpu: 250m/500m'],
    [{ type: 'Resource', resource: { name: 'cpu', ...percent } }, {}, 'cpu: <unknown>/80%'],
    [{ type: 'Resource', resource: { name: 'cpu', ...percent } }, { resource: used }, 'cpu: 33%/80%'],
    [{ type: 'Resource', resource: { name: 'cpu' } }, { resource: {} }, 'cpu: <unknown>/<auto>'],
    [{ type: 'ContainerResource', containerResource: { name: 'cpu', ...average } }, {}, 'cpu: <unknown>/500m'],
    [
      { type: 'ContainerResource', containerResource: { name: 'cpu', ...percent } },
      { containerResource: used },
      'cpu: 33%/80%',
    ],
    [{ type: 'Custom' }, {}, '<unknown type>'],
  ]
  for (const [metric, status, text] of rows) t.equal(targets([metric], [status]), text, JSON.stringify(metric))
})

test('two metrics are shown, and the number of the others', async (t) => {
  const utilization = (name: string) => ({ type: 'Resource', resource: { name, target: { averageUtilization: 50 } } })
  const [cpu, memory] = ['cpu: <unknown>/50%', 'memory: <unknown>/50%']
  t.equal(targets([utilization('cpu'), utilization('memory')]), `${cpu}, ${memory}`)
  t.equal(targets(['cpu', 'memory', 'a', 'b'].map(utilization)), `${cpu}, ${memory} + 2 more...`)
})
