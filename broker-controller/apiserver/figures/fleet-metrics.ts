/**
 * The fleet's objects as figures, under kube-state-metrics' names: `/metrics/fleet`. No label comes from what users write
 * into labels and annotations: what they may write there has no end.
 */
import type { Lease } from '../../../api/lease.ts'
import type { Namespace } from '../../../api/namespace.ts'
import type { Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { gauge, type MetricFamily, type MetricSample, metricsText } from '../../../daemon/prometheus-text.ts'
import type { Store } from '../../store/store.ts'
import { amountReader, createdAt, flat, instantOf, type MetricLabels, singleFigure } from './figures.ts'
import { nodeFamilies } from './node-figures.ts'
import { containerFamilies, podFamilies } from './pod-figures.ts'

export type FleetObjects = {
  readonly nodes: readonly Node[]
  readonly pods: readonly Pod[]
  readonly namespaces: readonly Namespace[]
  readonly leases: readonly Lease[]
  readonly budgets: readonly PodDisruptionBudget[]
}

/** All of it at one moment, in pieces; between two of them everybody else has a turn. */
export async function* fleetMetrics(store: Store): AsyncIterable<string> {
  const [nodes, pods, namespaces, leases, budgets] = await Promise.all([
    store.list('nodes'),
    store.list('pods'),
    store.list('namespaces'),
    store.list('leases'),
    store.list('poddisruptionbudgets'),
  ])
  const objects = {
    nodes: nodes.items,
    pods: pods.items,
    namespaces: namespaces.items,
    leases: leases.items,
    budgets: budgets.items,
  }
  for (const piece of metricsText(fleetFamilies(objects))) {
    yield piece
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export function* fleetFamilies(objects: FleetObjects): Iterable<MetricFamily> {
  const amounts = amountReader()
  yield* nodeFamilies(objects.nodes, amounts)
  yield* podFamilies(objects.pods)
  yield* containerFamilies(objects.pods, amounts)
  yield* otherFamilies(objects)
}

function* otherFamilies({ namespaces, leases, budgets }: FleetObjects): Iterable<MetricFamily> {
  const eachNamespace = (samplesOf: (namespace: Namespace, labels: MetricLabels) => Iterable<MetricSample>) =>
    flat(namespaces, (namespace) => samplesOf(namespace, { namespace: namespace.metadata.name }))
  yield gauge('kube_namespace_created', 'When it was made.', eachNamespace(createdAt))
  yield gauge(
    'kube_namespace_status_phase',
    'Its phase: 1 for the one it is in.',
    eachNamespace(({ status }, labels) =>
      ['Active', 'Terminating'].map((phase) =>
        singleFigure((status?.phase ?? 'Active') === phase ? 1 : 0, { ...labels, phase }),
      ),
    ),
  )
  yield gauge(
    'kube_lease_renew_time',
    'When it was last renewed.',
    flat(leases, ({ metadata, spec }) =>
      instantOf(spec?.renewTime, {
        lease: metadata.name,
        namespace: metadata.namespace,
        lease_holder: spec?.holderIdentity,
      }),
    ),
  )
  const eachBudget = (value: (status: NonNullable<PodDisruptionBudget['status']>) => number | undefined) =>
    flat(budgets, ({ metadata, status }) => {
      const number = status === undefined ? undefined : value(status)
      const labels = { namespace: metadata.namespace, poddisruptionbudget: metadata.name }
      return number === undefined ? [] : [singleFigure(number, labels)]
    })
  const prefix = 'kube_poddisruptionbudget_status'
  yield gauge(
    `${prefix}_current_healthy`,
    'Healthy pods.',
    eachBudget(({ currentHealthy }) => currentHealthy),
  )
  yield gauge(
    `${prefix}_desired_healthy`,
    'Healthy pods wanted.',
    eachBudget(({ desiredHealthy }) => desiredHealthy),
  )
  yield gauge(
    `${prefix}_expected_pods`,
    'Pods it counts.',
    eachBudget(({ expectedPods }) => expectedPods),
  )
  yield gauge(
    `${prefix}_pod_disruptions_allowed`,
    'Pods that may go.',
    eachBudget(({ disruptionsAllowed }) => disruptionsAllowed),
  )
}
