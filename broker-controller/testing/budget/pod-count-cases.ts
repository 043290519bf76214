/** Controllers whose decisions are over all pods of an owner, a Service or a namespace, in what the other cases leave out. */
import { jobNames } from '../../../api/batch/job.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { autoscalerMetrics } from '../../controllers/autoscaling/autoscaler-metrics.ts'
import { type AutoscalerNeeds, horizontalPodAutoscaler } from '../../controllers/autoscaling/horizontal-controller.ts'
import type { Scales } from '../../controllers/autoscaling/scales.ts'
import { endpointsController } from '../../controllers/endpoints/endpoints-controller.ts'
import { disruptionController } from '../../controllers/pods/disruption-controller.ts'
import { type WorkloadNeeds, workloadControllers } from '../../controllers/workloads/workload-controllers.ts'
import type { ReceivedUsage } from '../../usage/usage-board.ts'
import { type ControllerCase, create, each, edit, fillPods, labels, touchPod } from './controller-cases.ts'

const metadata = { name: 'web', namespace: 'many' }
const selector = { matchLabels: labels }
const template = {
  metadata: { labels },
  spec: { containers: [{ name: 'main', image: 'web:1' }], restartPolicy: 'Never' },
}
const mostNodes = 10_000
/** Labels of a selector: with the rest of its object nearly as many values as a body may have. */
const manyLabels = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, 'v']))

const job = (completions: number) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata,
  spec: { parallelism: completions, completions, completionMode: 'Indexed', selector, template },
})

/** What the autoscaler reads and writes instead of real nodes and workloads: each pod uses as much as it requests. */
function autoscaled(needs: WorkloadNeeds, pods: number): AutoscalerNeeds {
  const containers = new Map([['main', { cpu: 1e9, memory: 1024 }]])
  const used = new Map<string, typeof containers>()
  const each = Object.assign(used, { get: () => containers })
  const sample: ReceivedUsage = {
    receivedMs: 0,
    receivedWallMs: 0,
    windowSeconds: 10,
    node: { cpu: 0, memory: 0 },
    pods: each,
  }
  const scale = {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { ...metadata, uid: 'web', resourceVersion: '1', creationTimestamp: '' },
    spec: { replicas: pods },
    status: { replicas: pods, selector: 'app=web' },
  } as const
  const scales: Scales = { get: async () => ({ resource: 'replicasets', scale }), update: async () => {} }
  const usage = { look: async () => {}, newest: () => sample }
  return { ...needs, scales, usage, autoscalerMetrics: autoscalerMetrics(metricsRegistry()) }
}

export const podCountCases: readonly ControllerCase[] = [
  {
    what: 'an indexed Job whose many pods have ended is taken over',
    loops: (needs) => workloadControllers(needs),
    async fill(world) {
      const one = job(world.pods)
      const owner = await create(world, 'jobs', { ...one, spec: { ...one.spec, managedBy: 'example.com/other' } })
      await fillPods(world, owner, (pod, at) => ({
        ...pod,
        metadata: {
          ...pod.metadata,
          finalizers: [jobNames.trackingFinalizer],
          annotations: { [jobNames.completionIndex]: String(at) },
        },
        status: { ...pod.status, phase: 'Succeeded' },
      }))
    },
    act: (world) =>
      edit(world, 'jobs', (present: { spec: object }) => ({
        ...present,
        spec: { ...present.spec, managedBy: jobNames.controller },
      })),
  },
  {
    what: 'a DaemonSet loses a pod on one of many nodes',
    loops: (needs) => workloadControllers(needs),
    async fill(world) {
      const count = Math.min(world.pods, mostNodes)
      await each(count, (at) => world.store.create('nodes', aNode({ name: `pi-${at}` })))
      const { restartPolicy: _, ...spec } = template.spec
      const set = {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata,
        spec: { selector, template: { ...template, spec } },
      }
      const onNode = (pod: Parameters<NonNullable<Parameters<typeof fillPods>[2]>>[0], at: number) => ({
        ...pod,
        spec: { ...pod.spec, nodeName: `pi-${at}` },
      })
      await fillPods(world, await create(world, 'daemonsets', set), onNode, count)
    },
    act: touchPod,
  },
  {
    what: 'a PodDisruptionBudget of a part of many pods loses one',
    loops: (needs) => [disruptionController(needs)],
    async fill(world) {
      const set = {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata,
        spec: { replicas: world.pods, selector, template },
      }
      await fillPods(world, await create(world, 'replicasets', set))
      const spec = { maxUnavailable: '10%', selector }
      await create(world, 'poddisruptionbudgets', {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata,
        spec,
      })
    },
    act: touchPod,
  },
  {
    what: 'a Service with a large selector is created beside many pods',
    loops: (needs) => [endpointsController(needs)],
    fill: (world) => fillPods(world, undefined),
    act: (world) =>
      create(world, 'services', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: { selector: { ...labels, ...manyLabels }, clusterIP: 'None', ipFamilies: ['IPv4'] },
      }),
  },
  {
    what: 'an autoscaler of many pods is synced',
    loops: (needs, pods) => [horizontalPodAutoscaler(autoscaled(needs, pods))],
    async fill(world) {
      await each(100, (at) => world.store.create('nodes', aNode({ name: `pi-${at}` })))
      const resources = { requests: { cpu: '1' } }
      await fillPods(world, undefined, (pod) => ({
        ...pod,
        spec: { ...pod.spec, containers: [{ name: 'main', image: 'web:1', resources }] },
      }))
      const target = { type: 'Utilization', averageUtilization: 50 }
      const metric = { type: 'Resource', resource: { name: 'cpu', target } }
      await create(world, 'horizontalpodautoscalers', {
        apiVersion: 'autoscaling/v2',
        kind: 'HorizontalPodAutoscaler',
        metadata,
        spec: {
          scaleTargetRef: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web' },
          maxReplicas: 100_000,
          metrics: [metric, metric],
        },
      })
    },
    act: ({ clock }) => clock.advance(15_000),
  },
]
