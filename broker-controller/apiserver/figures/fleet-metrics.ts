/**
 * Metrics of the fleet's objects, with the names of kube-state-metrics: `/metrics/fleet`. No metric label comes from the
 * labels and annotations of objects: the number of their values is unbounded.
 */
import { localTimeZone } from '../../../api/batch/time-zone.ts'
import type { Lease } from '../../../api/lease.ts'
import type { Namespace } from '../../../api/namespace.ts'
import type { Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { gauge, type MetricFamily, type MetricSample, metricsText } from '../../../daemon/prometheus-text.ts'
import type { Store } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import { type BackupObjects, backupFamilies } from './backup-figures.ts'
import { amountReader, createdAt, flat, instantOf, type MetricLabels, singleFigure } from './figures.ts'
import { nodeFamilies } from './node-figures.ts'
import { containerFamilies, podFamilies } from './pod-figures.ts'

export type FleetObjects = {
  readonly nodes: readonly Node[]
  readonly pods: readonly Pod[]
  readonly namespaces: readonly Namespace[]
  readonly leases: readonly Lease[]
  readonly budgets: readonly PodDisruptionBudget[]
} & BackupObjects

export type FleetMetricsNeeds = {
  readonly store: Store
  /** What nodes report of their volumes; undefined: none do. */
  readonly storage?: Pick<StorageBoard, 'reportOf'>
  readonly clock: Pick<Clock, 'wallMs'>
}

/** All metrics of one moment, in pieces; yields to the event loop between two of them. */
export async function* fleetMetrics({ store, storage, clock }: FleetMetricsNeeds): AsyncIterable<string> {
  const [nodes, pods, namespaces, leases, budgets, volumes, claims, classes] = await Promise.all([
    store.list('nodes'),
    store.list('pods'),
    store.list('namespaces'),
    store.list('leases'),
    store.list('poddisruptionbudgets'),
    store.list('persistentvolumes'),
    store.list('persistentvolumeclaims'),
    store.list('storageclasses'),
  ])
  const objects = {
    nodes: nodes.items,
    pods: pods.items,
    namespaces: namespaces.items,
    leases: leases.items,
    budgets: budgets.items,
    volumes: volumes.items,
    claims: claims.items,
    classes: classes.items,
    reportOf: (node: string) => storage?.reportOf(node),
    nowMs: clock.wallMs(),
    zone: localTimeZone(),
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
  yield* backupFamilies(objects)
  yield* otherFamilies(objects)
}

function* otherFamilies({ namespaces, leases, budgets }: FleetObjects): Iterable<MetricFamily> {
  const eachNamespace = (samplesOf: (namespace: Namespace, labels: MetricLabels) => Iterable<MetricSample>) =>
    flat(namespaces, (namespace) => samplesOf(namespace, { namespace: namespace.metadata.name }))
  yield gauge('kube_namespace_created', 'Creation time, Unix timestamp.', eachNamespace(createdAt))
  yield gauge(
    'kube_namespace_status_phase',
    'Phase of the namespace: 1 for the current one.',
    eachNamespace(({ status }, labels) =>
      ['Active', 'Terminating'].map((phase) =>
        singleFigure((status?.phase ?? 'Active') === phase ? 1 : 0, { ...labels, phase }),
      ),
    ),
  )
  yield gauge(
    'kube_lease_renew_time',
    'Time of the last renewal, Unix timestamp.',
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
    'Healthy pods selected by the budget.',
    eachBudget(({ currentHealthy }) => currentHealthy),
  )
  yield gauge(
    `${prefix}_desired_healthy`,
    'Minimum number of healthy pods.',
    eachBudget(({ desiredHealthy }) => desiredHealthy),
  )
  yield gauge(
    `${prefix}_expected_pods`,
    'Pods selected by the budget.',
    eachBudget(({ expectedPods }) => expectedPods),
  )
  yield gauge(
    `${prefix}_pod_disruptions_allowed`,
    'Evictions allowed now.',
    eachBudget(({ disruptionsAllowed }) => disruptionsAllowed),
  )
}
