import { test } from 'tap'
import type { HorizontalPodAutoscaler } from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { type WorkloadWorld, workloadWorld } from '../../testing/workload-world.ts'
import { usageBoard } from '../../usage/usage-board.ts'
import { autoscalerMetrics } from './autoscaler-metrics.ts'
import { type AutoscalerNeeds, horizontalPodAutoscaler } from './horizontal-controller.ts'

type Test = Parameters<typeof workloadWorld>[0]
type Spec = HorizontalPodAutoscaler['spec']
const labels = { app: 'web' }
const period = 15_000
const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2025-12-31T00:00:00Z' } as const

/** A world with a node that reports usage whenever it is asked: `cpu` in thousandths of a core for each pod. */
async function anAutoscaledWorld(t: Test, change: (needs: AutoscalerNeeds) => AutoscalerNeeds = (needs) => needs) {
  const world = await workloadWorld(t)
  const { store, clock, needs } = world
  const usage = usageBoard({ clock })
  const facts = { cpu: 0, asked: 0 }
  const container = (name: string) => ({
    name,
    cpu: { usageNanoCores: facts.cpu * 1e6 },
    memory: { workingSetBytes: 1024 },
  })
  const report = async () => {
    const pods = (await store.list('pods')).items
    const podRef = ({ metadata: { name, uid, namespace = '' } }: (typeof pods)[number]) => ({ name, uid, namespace })
    const summary = {
      node: { nodeName: 'pi-01' },
      pods: pods.map((pod) => ({ podRef: podRef(pod), containers: [container('main')] })),
    }
    usage.receive('pi-01', { summary, windowSeconds: 10 } as never)
  }
  const look = async () => {
    facts.asked++
    await report()
  }
  await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-01' }, spec: {} } as never)
  const autoscaling = autoscalerMetrics(metricsRegistry())
  const reading = { look, newest: usage.newest }
  const all = change({ ...needs, scales: world.scales, usage: reading, autoscalerMetrics: autoscaling })
  world.start([horizontalPodAutoscaler(all)])
  const runPods = async (count: number) => {
    for (let index = 0; index < count; index++) {
      const made = await store.create('pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `web-${index}`, namespace: 'default', labels },
        spec: {
          nodeName: 'pi-01',
          containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: '1' } } }],
        },
      })
      const status = { phase: 'Running', startTime: '2025-12-31T00:00:00Z', conditions: [ready] } as const
      await store.updateStatus('pods', { ...made, status })
    }
  }
  return { world, facts, runPods }
}

async function aSet({ needs }: WorkloadWorld, replicas: number) {
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'i' }] } }
  const metadata = { name: 'web', namespace: 'default' }
  const spec = { replicas, selector: { matchLabels: labels }, template }
  await needs.creation.create('replicasets', { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata, spec }, 'test')
}

async function anAutoscaler({ needs }: WorkloadWorld, spec: Spec = {}, name = 'web') {
  await needs.creation.create(
    'horizontalpodautoscalers',
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name, namespace: 'default' },
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web' }, maxReplicas: 10, ...spec },
    },
    'test',
  )
}

const statusOf = async ({ store }: WorkloadWorld, name = 'web') =>
  (await store.get('horizontalpodautoscalers', { namespace: 'default', name }))?.status
const replicasOf = async ({ store }: WorkloadWorld) =>
  (await store.get('replicasets', { namespace: 'default', name: 'web' }))?.spec.replicas
const eventsOf = async ({ store }: WorkloadWorld) =>
  (await store.list('events')).items.map(({ reason, message, type }) => `${type} ${reason}: ${message}`)
const condition = async (world: WorkloadWorld, type: string, name = 'web') =>
  (await statusOf(world, name))?.conditions?.find((one) => one.type === type)

test('busy pods get more replicas a period after the autoscaler is created', async (t) => {
  const { world, facts, runPods } = await anAutoscaledWorld(t)
  await aSet(world, 2)
  await runPods(2)
  facts.cpu = 1200
  await anAutoscaler(world)
  await world.settle(period - 1)
  t.equal(await replicasOf(world), 2)
  await world.settle(1)
  t.equal(await replicasOf(world), 3)
  t.match(await statusOf(world), {
    currentReplicas: 2,
    desiredReplicas: 3,
    lastScaleTime: '2026-01-01T00:00:15Z',
    currentMetrics: [
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 120, averageValue: '1200m' } } },
    ],
    conditions: [
      { type: 'AbleToScale', status: 'True', reason: 'SucceededRescale', message: /update the target scale to 3$/ },
      { type: 'ScalingActive', status: 'True', reason: 'ValidMetricFound' },
      { type: 'ScalingLimited', status: 'False', reason: 'DesiredWithinRange' },
    ],
  })
  t.same(await eventsOf(world), [
    'Normal SuccessfulRescale: New size: 3; reason: cpu resource utilization (percentage of request) above target',
  ])
})

test('idle pods are removed when the window of stabilization is over', async (t) => {
  const { world, facts, runPods } = await anAutoscaledWorld(t)
  await aSet(world, 4)
  await runPods(4)
  facts.cpu = 100
  await anAutoscaler(world, { minReplicas: 2 })
  await world.settle(period)
  t.equal(await replicasOf(world), 4)
  t.match(await condition(world, 'AbleToScale'), { reason: 'ScaleDownStabilized' })
  await world.settle(5 * 60_000)
  t.equal(await replicasOf(world), 4)
  await world.settle(period)
  t.equal(await replicasOf(world), 2, 'one is enough, two is the least')
  t.match(await condition(world, 'ScalingLimited'), { status: 'True', reason: 'TooFewReplicas' })
  t.same(await eventsOf(world), ['Normal SuccessfulRescale: New size: 2; reason: All metrics below target'])
})

test('a behavior is kept over several syncs', async (t) => {
  const { world, facts, runPods } = await anAutoscaledWorld(t)
  await aSet(world, 1)
  await runPods(1)
  facts.cpu = 9000
  await anAutoscaler(world, { behavior: { scaleUp: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] } } })
  await world.settle(period)
  t.equal(await replicasOf(world), 2)
  t.match(await condition(world, 'ScalingLimited'), { reason: 'ScaleUpLimit' })
  await world.settle(3 * period)
  t.equal(await replicasOf(world), 2)
  await world.settle(period)
  t.equal(await replicasOf(world), 3)
})

test('the limits are set without reading metrics, and zero replicas are left alone', async (t) => {
  const { world, facts } = await anAutoscaledWorld(t)
  await aSet(world, 20)
  await anAutoscaler(world)
  await world.settle(period)
  t.equal(await replicasOf(world), 10)
  await world.edit('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 1 } }))
  await world.edit('horizontalpodautoscalers', 'web', (one) => ({ ...one, spec: { ...one.spec, minReplicas: 3 } }))
  await world.settle(period)
  t.equal(await replicasOf(world), 3)
  await world.edit('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 0 } }))
  await world.settle(period)
  t.equal(await replicasOf(world), 0)
  t.match(await condition(world, 'ScalingActive'), { status: 'False', reason: 'ScalingDisabled' })
  t.equal(facts.asked, 0)
  t.same(await eventsOf(world), [
    'Normal SuccessfulRescale: New size: 10; reason: Current number of replicas above Spec.MaxReplicas',
    'Normal SuccessfulRescale: New size: 3; reason: Current number of replicas below Spec.MinReplicas',
  ])
})

test('a target that cannot be scaled is a condition and an Event', async (t) => {
  const { world } = await anAutoscaledWorld(t)
  const cases = [
    ['one', { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web' }, 'replicasets/scale.apps "web" not found'],
    ['two', { apiVersion: 'v1', kind: 'Pod', name: 'web' }, 'the server could not find the requested resource'],
    ['three', { apiVersion: 'x.io/v1', kind: 'Robot', name: 'web' }, 'no matches for kind "Robot" in group "x.io"'],
    ['four', { apiVersion: 'a/b/c', kind: 'Robot', name: 'web' }, 'unexpected GroupVersion string: a/b/c'],
  ] as const
  for (const [name, scaleTargetRef] of cases) await anAutoscaler(world, { scaleTargetRef }, name)
  await world.settle(period)
  for (const [name, , problem] of cases) {
    t.match(await condition(world, 'AbleToScale', name), {
      status: 'False',
      reason: 'FailedGetScale',
      message: `the HPA controller was unable to get the target's current scale: ${problem}`,
    })
    t.ok((await eventsOf(world)).includes(`Warning FailedGetScale: ${problem}`), name)
  }
  await world.settle(period)
  t.equal((await eventsOf(world)).length, cases.length, 'they are counted')
})

test('without metrics nothing is scaled, and two Events are counted', async (t) => {
  const { world } = await anAutoscaledWorld(t)
  await aSet(world, 2)
  await anAutoscaler(world)
  await world.settle(period)
  t.equal(await replicasOf(world), 2)
  const problem =
    'failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API'
  t.match(await statusOf(world), {
    currentReplicas: 2,
    desiredReplicas: 0,
    currentMetrics: [{ type: '' }],
    conditions: [
      { type: 'AbleToScale', status: 'True', reason: 'SucceededGetScale' },
      { type: 'ScalingActive', status: 'False', reason: 'FailedGetResourceMetric', message: new RegExp(`${problem}$`) },
    ],
  })
  t.same(await eventsOf(world), [
    `Warning FailedGetResourceMetric: ${problem}`,
    `Warning FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ${problem}`,
  ])
  const written = (await world.store.list('horizontalpodautoscalers')).items[0]?.metadata.resourceVersion
  await world.settle(40 * period)
  t.equal((await eventsOf(world)).length, 2, 'they are counted')
  const later = (await world.store.list('horizontalpodautoscalers')).items[0]?.metadata.resourceVersion
  t.equal(later, written, 'a status that stays is not written again')
})

test('two autoscalers of the same pods scale nothing', async (t) => {
  const { world, facts, runPods } = await anAutoscaledWorld(t)
  await aSet(world, 1)
  await runPods(1)
  await anAutoscaler(world, {}, 'a')
  await anAutoscaler(world, {}, 'b')
  await world.settle(2 * period)
  facts.cpu = 9000
  await world.settle(2 * period)
  t.equal(await replicasOf(world), 1)
  const message = 'pods by selector app=web are controlled by multiple HPAs: [{a default} {b default}]'
  for (const name of ['a', 'b']) {
    t.match(await condition(world, 'ScalingActive', name), { status: 'False', reason: 'AmbiguousSelector', message })
  }
  await world.store.delete('horizontalpodautoscalers', { namespace: 'default', name: 'b' })
  await world.settle(2 * period)
  t.ok(((await replicasOf(world)) ?? 0) > 1)
})

test('a scale that was refused is tried again', async (t) => {
  let refusals = 1
  const { world, facts, runPods } = await anAutoscaledWorld(t, (needs) => ({
    ...needs,
    scales: {
      get: needs.scales.get,
      update: async (...given) => {
        if (refusals-- > 0) throw new Error('no room')
        await needs.scales.update(...given)
      },
    },
  }))
  await aSet(world, 1)
  await runPods(1)
  facts.cpu = 1500
  await anAutoscaler(world)
  await world.settle(period)
  t.match(await condition(world, 'AbleToScale'), {
    status: 'False',
    reason: 'FailedUpdateScale',
    message: 'the HPA controller was unable to update the target scale: no room',
  })
  t.match(await eventsOf(world), [/^Warning FailedRescale: New size: 2; reason: cpu .* above target; error: no room$/])
  await world.settle(period)
  t.equal(await replicasOf(world), 2)
  t.match(await condition(world, 'AbleToScale'), { status: 'True', reason: 'SucceededRescale' })
})

test('without autoscalers nothing is read and no timer is set', async (t) => {
  const { world, facts } = await anAutoscaledWorld(t)
  await world.settle(period)
  const { sleepers } = world.clock
  await world.settle(60_000)
  t.equal(facts.asked, 0)
  t.equal(world.clock.sleepers, sleepers)
})

test('syncs are counted by what they did, and timed', async (t) => {
  const registry = metricsRegistry()
  const counted = () =>
    registry
      .samplesOf('horizontal_pod_autoscaler_controller_reconciliations_total')
      .map(({ labels, value }) => `${labels?.['action']} ${labels?.['error']}: ${value}`)
  const { world, facts, runPods } = await anAutoscaledWorld(t, (needs) => ({
    ...needs,
    autoscalerMetrics: autoscalerMetrics(registry),
  }))
  await anAutoscaler(world)
  await world.settle(period)
  t.same(counted(), ['none internal: 1'], 'there is nothing to scale')
  await aSet(world, 2)
  await runPods(2)
  facts.cpu = 1200
  await world.settle(period)
  t.same(counted(), ['none internal: 1', 'scale_up none: 1'])
  t.match(registry.text(), /reconciliation_duration_seconds_count\{action="scale_up",error="none"\} 1\n/)
})
