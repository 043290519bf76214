/** Metrics of pods and their containers: kube-state-metrics' `kube_pod_*`. */
import { type ContainerStatus, type Pod, podPhases } from '../../../api/pod.ts'
import { counter, gauge, type MetricFamily, type MetricSample } from '../../../daemon/prometheus-text.ts'
import {
  type AmountReader,
  because,
  createdAt,
  flat,
  instantOf,
  type MetricLabels,
  singleFigure,
  truths,
} from './figures.ts'

export function* podFamilies(pods: readonly Pod[]): Iterable<MetricFamily> {
  const each = (samplesOf: (pod: Pod, labels: MetricLabels) => Iterable<MetricSample>) =>
    flat(pods, (pod) => samplesOf(pod, labelsOf(pod)))
  yield gauge(
    'kube_pod_info',
    'Information about the pod.',
    each(({ metadata, spec, status }, labels) => {
      const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
      return [
        singleFigure(1, {
          ...labels,
          host_ip: status?.hostIP ?? '',
          pod_ip: status?.podIP ?? '',
          node: spec.nodeName ?? '',
          created_by_kind: owner?.kind ?? '',
          created_by_name: owner?.name ?? '',
          priority_class: spec.priorityClassName ?? '',
          host_network: String(spec.hostNetwork === true),
        }),
      ]
    }),
  )
  yield gauge(
    'kube_pod_owner',
    'Owners of the pod.',
    each(({ metadata: { ownerReferences = [] } }, labels) =>
      ownerReferences.length === 0
        ? [singleFigure(1, { ...labels, owner_kind: '', owner_name: '', owner_is_controller: '' })]
        : ownerReferences.map(({ kind, name, controller }) =>
            singleFigure(1, {
              ...labels,
              owner_kind: kind,
              owner_name: name,
              owner_is_controller: String(controller === true),
            }),
          ),
    ),
  )
  yield gauge('kube_pod_created', 'Creation time, Unix timestamp.', each(createdAt))
  yield gauge(
    'kube_pod_deletion_timestamp',
    'Deletion time, Unix timestamp.',
    each(({ metadata }, labels) => instantOf(metadata.deletionTimestamp, labels)),
  )
  yield gauge(
    'kube_pod_start_time',
    'Start time, Unix timestamp.',
    each(({ status }, labels) => instantOf(status?.startTime, labels)),
  )
  yield gauge(
    'kube_pod_status_phase',
    'Phase of the pod: 1 for the current one.',
    each(({ status }, labels) =>
      podPhases.map((phase) => singleFigure((status?.phase ?? 'Pending') === phase ? 1 : 0, { ...labels, phase })),
    ),
  )
  for (const [name, type] of [
    ['kube_pod_status_ready', 'Ready'],
    ['kube_pod_status_scheduled', 'PodScheduled'],
  ] as const) {
    yield gauge(
      name,
      `Condition ${type} of the pod: 1 for the current status.`,
      each(({ status }, labels) => {
        const now = status?.conditions?.find((condition) => condition.type === type)?.status.toLowerCase()
        if (now === undefined) return []
        return truths.map((truth) => singleFigure(now === truth ? 1 : 0, { ...labels, condition: truth }))
      }),
    )
  }
  yield gauge(
    'kube_pod_status_reason',
    'Reason of the pod status.',
    each(({ status }, labels) => because(status?.reason, labels)),
  )
  yield gauge(
    'kube_pod_status_qos_class',
    'QoS class of the pod.',
    each(({ status }, labels) =>
      status?.qosClass ? [singleFigure(1, { ...labels, qos_class: status.qosClass })] : [],
    ),
  )
}

export function* containerFamilies(pods: readonly Pod[], amounts: AmountReader): Iterable<MetricFamily> {
  const each = (samplesOf: (status: ContainerStatus, labels: MetricLabels) => readonly MetricSample[]) =>
    flat(pods, (pod) =>
      flat(pod.status?.containerStatuses ?? [], (status) =>
        samplesOf(status, { ...labelsOf(pod), container: status.name }),
      ),
    )
  const yes = (value: unknown) => (value ? 1 : 0)
  const prefix = 'kube_pod_container'
  yield gauge(
    `${prefix}_info`,
    'Information about the container.',
    each(({ image, imageID, containerID = '' }, labels) => [
      singleFigure(1, { ...labels, image, image_id: imageID, container_id: containerID }),
    ]),
  )
  yield gauge(
    `${prefix}_status_ready`,
    '1 if the container is ready.',
    each(({ ready }, labels) => [singleFigure(yes(ready), labels)]),
  )
  yield gauge(
    `${prefix}_status_running`,
    '1 if the container is running.',
    each(({ state }, labels) => [singleFigure(yes(state?.running), labels)]),
  )
  yield gauge(
    `${prefix}_status_waiting`,
    '1 if the container is waiting.',
    each(({ state }, labels) => [singleFigure(yes(state?.waiting), labels)]),
  )
  yield gauge(
    `${prefix}_status_terminated`,
    '1 if the container is terminated.',
    each(({ state }, labels) => [singleFigure(yes(state?.terminated), labels)]),
  )
  yield gauge(
    `${prefix}_status_waiting_reason`,
    'Reason of the waiting state.',
    each(({ state }, labels) => because(state?.waiting?.reason, labels)),
  )
  yield gauge(
    `${prefix}_status_terminated_reason`,
    'Reason of the terminated state.',
    each(({ state }, labels) => because(state?.terminated?.reason, labels)),
  )
  yield gauge(
    `${prefix}_status_last_terminated_reason`,
    'Reason of the last terminated state.',
    each(({ lastState }, labels) => because(lastState?.terminated?.reason, labels)),
  )
  yield counter(
    `${prefix}_status_restarts_total`,
    'Restarts of the container.',
    each(({ restartCount }, labels) => [singleFigure(restartCount, labels)]),
  )
  for (const kind of ['requests', 'limits'] as const) {
    yield gauge(
      `${prefix}_resource_${kind}`,
      `Resource ${kind} of the container.`,
      flat(pods, (pod) =>
        flat(pod.spec.containers, ({ name, resources }) =>
          amounts(resources?.[kind], { ...labelsOf(pod), container: name, node: pod.spec.nodeName ?? '' }),
        ),
      ),
    )
  }
}

function labelsOf({ metadata }: Pod): MetricLabels {
  return { namespace: metadata.namespace, pod: metadata.name, uid: metadata.uid }
}
