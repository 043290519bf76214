import { test } from 'tap'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const v2 = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers'
const v1 = '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers'
const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
const autoscaler = (spec: object = {}, name = 'web', apiVersion = 'autoscaling/v2') => ({
  apiVersion,
  kind: 'HorizontalPodAutoscaler',
  metadata: { name },
  spec: { scaleTargetRef, maxReplicas: 5, ...spec },
})
const utilization = (name: string, averageUtilization: number) => ({
  type: 'Resource',
  resource: { name, target: { type: 'Utilization', averageUtilization } },
})
const annotation = (name: string) => `autoscaling.alpha.kubernetes.io/${name}`

test('a new autoscaler has the defaults of Kubernetes and no status of its author', async (t) => {
  const { ask } = await anApi(t)
  const made = await ask('POST', v2, { body: { ...autoscaler(), status: { desiredReplicas: 9 } } })
  t.match(made, { code: 201 })
  t.same(made.body['spec'], { scaleTargetRef, minReplicas: 1, maxReplicas: 5, metrics: [utilization('cpu', 80)] })
  t.same(made.body['status'], { desiredReplicas: 0 })
  const behavior = { scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] } }
  t.match((await ask('POST', v2, { body: autoscaler({ behavior }, 'two') })).body['spec'], {
    behavior: {
      scaleUp: {
        stabilizationWindowSeconds: 0,
        selectPolicy: 'Max',
        policies: [
          { type: 'Pods', value: 4, periodSeconds: 15 },
          { type: 'Percent', value: 100, periodSeconds: 15 },
        ],
      },
      scaleDown: { stabilizationWindowSeconds: undefined, selectPolicy: 'Max', policies: [{ value: 1 }] },
    },
  })
})

test('version 1 shows the target for CPU as a field, and the rest in annotations', async (t) => {
  const { ask } = await anApi(t)
  const memory = {
    type: 'Resource',
    resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } },
  }
  const behavior = {
    scaleUp: { selectPolicy: 'Min', policies: [{ type: 'Pods', value: 2, periodSeconds: 30 }] },
    scaleDown: { selectPolicy: 'Disabled' },
  }
  await ask('POST', v2, { body: autoscaler({ metrics: [memory, utilization('cpu', 70)], behavior }) })
  const condition = { type: 'AbleToScale', status: 'True', reason: 'R', message: 'm' }
  const status = {
    currentReplicas: 2,
    desiredReplicas: 3,
    currentMetrics: [
      { type: 'Resource', resource: { name: 'cpu', current: { averageValue: '100m', averageUtilization: 50 } } },
    ],
    conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }],
  }
  t.match(await ask('PATCH', `${v2}/web/status`, { type: patchTypes.merge, body: { status } }), { code: 200 })
  const shown = (await ask('GET', `${v1}/web`)).body
  t.match(shown, {
    apiVersion: 'autoscaling/v1',
    status: { currentReplicas: 2, desiredReplicas: 3, currentCPUUtilizationPercentage: 50 },
  })
  t.same(shown['spec'], { scaleTargetRef, minReplicas: 1, maxReplicas: 5, targetCPUUtilizationPercentage: 70 })
  const { annotations } = shown['metadata'] as { annotations: { [name: string]: string } }
  t.equal(
    annotations[annotation('metrics')],
    '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]',
  )
  t.equal(
    annotations[annotation('current-metrics')],
    '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":50,"currentAverageValue":"100m"}}]',
  )
  t.equal(
    annotations[annotation('behavior')],
    '{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Min","Policies":[{"Type":"Pods","Value":2,"PeriodSeconds":30}]},"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Disabled","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}]}}',
  )
  t.same(JSON.parse(annotations[annotation('conditions')] ?? ''), status.conditions)
  const before = (await ask('GET', `${v2}/web`)).body
  t.notOk('annotations' in (before['metadata'] as object), 'version 2 has none of them')
  t.match(await ask('PUT', `${v1}/web`, { body: shown }), { code: 200 })
  t.match(
    await ask('PATCH', `${v1}/web/status`, { type: patchTypes.merge, body: { status: { currentReplicas: 4 } } }),
    {
      code: 200,
      body: { apiVersion: 'autoscaling/v1', status: { currentReplicas: 4 } },
    },
  )
  const after = (await ask('GET', `${v2}/web`)).body
  t.same(after['spec'], before['spec'], 'a write of what version 1 shows changes nothing')
  t.same(after['status'], { ...status, currentReplicas: 4 })
  const patch = { spec: { targetCPUUtilizationPercentage: 60 } }
  t.match(await ask('PATCH', `${v1}/web`, { type: patchTypes.strategic, body: patch }), { code: 200 })
  t.match((await ask('GET', `${v2}/web`)).body['spec'], { metrics: [memory, utilization('cpu', 60)], behavior })
})

test('version 1 takes every kind of metric there and back', async (t) => {
  const { ask } = await anApi(t)
  const selector = { matchLabels: { a: 'b' } }
  const metric = { name: 'rps', selector }
  const describedObject = { apiVersion: 'v1', kind: 'Service', name: 'web' }
  const average = { type: 'AverageValue', averageValue: '5' }
  const whole = { type: 'Value', value: '5' }
  const container = { name: 'cpu', container: 'main' }
  const metrics = [
    { type: 'Object', object: { metric, describedObject, target: whole } },
    { type: 'Object', object: { metric, describedObject, target: average } },
    { type: 'Pods', pods: { metric, target: average } },
    { type: 'External', external: { metric, target: whole } },
    { type: 'External', external: { metric, target: average } },
    { type: 'ContainerResource', containerResource: { ...container, target: average } },
    {
      type: 'ContainerResource',
      containerResource: { ...container, target: { type: 'Utilization', averageUtilization: 9 } },
    },
    utilization('memory', 10),
    utilization('cpu', 10),
  ]
  await ask('POST', v2, { body: autoscaler({ metrics }) })
  const current = { averageValue: '5' }
  const currentMetrics = [
    { type: 'Object', object: { metric, describedObject, current: { value: '4' } } },
    { type: 'Object', object: { metric, describedObject, current } },
    { type: 'Pods', pods: { metric, current } },
    { type: 'External', external: { metric, current } },
    { type: 'ContainerResource', containerResource: { ...container, current } },
    { type: '' },
  ]
  await ask('PATCH', `${v2}/web/status`, { type: patchTypes.merge, body: { status: { currentMetrics } } })
  const shown = (await ask('GET', `${v1}/web`)).body
  t.match(await ask('PUT', `${v1}/web`, { body: shown }), { code: 200 })
  t.match(await ask('PUT', `${v1}/web/status`, { body: shown }), { code: 200 })
  const { spec, status } = (await ask('GET', `${v2}/web`)).body as { spec: object; status: object }
  t.match(spec, { metrics })
  t.match(status, { currentMetrics })
})

test('version 1 without a target has that of 80 percent, and annotations that cannot be read count as absent', async (t) => {
  const { ask } = await anApi(t)
  const made = (name: string, annotations: object, spec: object = {}) => {
    const one = autoscaler(spec, name, 'autoscaling/v1')
    return ask('POST', v1, { body: { ...one, metadata: { name, annotations } } })
  }
  t.match(await made('one', {}), { code: 201, body: { spec: { targetCPUUtilizationPercentage: 80 } } })
  const bad = {
    [annotation('metrics')]: '{',
    [annotation('behavior')]: '[1]',
    [annotation('conditions')]: '"x"',
    own: 'x',
  }
  const two = (await made('two', bad)).body
  t.match(two, { spec: { targetCPUUtilizationPercentage: 80 } })
  t.same((two['metadata'] as { annotations: object }).annotations, { own: 'x' })
  const lower = { scaledown: { selectpolicy: 'Disabled' } }
  await made('three', { [annotation('behavior')]: JSON.stringify(lower) }, { targetCPUUtilizationPercentage: 5 })
  t.match((await ask('GET', `${v2}/three`)).body['spec'], {
    metrics: [utilization('cpu', 5)],
    behavior: { scaleDown: { selectPolicy: 'Disabled' } },
  })
  t.match(await made('four', {}, { targetCPUUtilizationPercentage: 0 }), {
    code: 422,
    body: {
      message:
        'HorizontalPodAutoscaler.autoscaling "four" is invalid: spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0',
    },
  })
})

test('the table shows targets and what is used', async (t) => {
  const { ask } = await anApi(t)
  const container = { name: 'cpu', container: 'main', target: { type: 'AverageValue', averageValue: '500m' } }
  const metric = { name: 'rps' }
  const average = { type: 'AverageValue', averageValue: '5' }
  const describedObject = { kind: 'Service', name: 'web' }
  const bodies: readonly (readonly [string, object])[] = [
    ['a', {}],
    ['b', { metrics: [utilization('cpu', 50), { type: 'ContainerResource', containerResource: container }] }],
    [
      'c',
      {
        metrics: [{ type: 'Pods', pods: { metric, target: average } }, ...[1, 2].map((n) => utilization('memory', n))],
      },
    ],
    ['d', { metrics: [{ type: 'External', external: { metric, target: average } }] }],
    [
      'e',
      { metrics: [{ type: 'Object', object: { metric, describedObject, target: { type: 'Value', value: '2k' } } }] },
    ],
  ]
  for (const [name, spec] of bodies) await ask('POST', v2, { body: autoscaler(spec, name) })
  const currentMetrics = [
    { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 33, averageValue: '33m' } } },
    { type: 'ContainerResource', containerResource: { ...container, current: { averageValue: '250m' } } },
  ]
  const status = { currentReplicas: 3, currentMetrics }
  await ask('PATCH', `${v2}/b/status`, { type: patchTypes.merge, body: { status } })
  for (const path of [v1, v2]) {
    const { columnDefinitions, rows } = (await ask('GET', path, { accept: tables })).body as {
      columnDefinitions: { name: string; type: string }[]
      rows: { cells: unknown[] }[]
    }
    t.same(
      columnDefinitions.map(({ name }) => name),
      ['Name', 'Reference', 'Targets', 'MinPods', 'MaxPods', 'Replicas', 'Age'],
    )
    t.same(
      rows.map(({ cells }) => cells.slice(0, 6)),
      [
        ['a', 'Deployment/web', 'cpu: <unknown>/80%', '1', 5, 0],
        ['b', 'Deployment/web', 'cpu: 33%/50%, cpu: 250m/500m', '1', 5, 3],
        ['c', 'Deployment/web', '<unknown>/5, memory: <unknown>/1% + 1 more...', '1', 5, 0],
        ['d', 'Deployment/web', '<unknown>/5 (avg)', '1', 5, 0],
        ['e', 'Deployment/web', '<unknown>/2k', '1', 5, 0],
      ],
    )
  }
})
