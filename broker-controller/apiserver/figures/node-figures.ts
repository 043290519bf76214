/** Metrics of nodes: kube-state-metrics' `kube_node_*`. */
import type { Node } from '../../../api/node.ts'
import { gauge, type MetricFamily, type MetricSample } from '../../../daemon/prometheus-text.ts'
import { type AmountReader, createdAt, flat, type MetricLabels, singleFigure, truths } from './figures.ts'

const rolePrefix = 'node-role.kubernetes.io/'

export function* nodeFamilies(nodes: readonly Node[], amounts: AmountReader): Iterable<MetricFamily> {
  const each = (samplesOf: (node: Node, labels: MetricLabels) => Iterable<MetricSample>) =>
    flat(nodes, (node) => samplesOf(node, { node: node.metadata.name }))
  yield gauge(
    'kube_node_info',
    'Information about the node.',
    each(({ status, spec }, labels) => {
      const info = status?.nodeInfo
      const ip = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address
      return [
        singleFigure(1, {
          ...labels,
          kernel_version: info?.kernelVersion ?? '',
          os_image: info?.osImage ?? '',
          container_runtime_version: info?.containerRuntimeVersion ?? '',
          kubelet_version: info?.kubeletVersion ?? '',
          kubeproxy_version: info?.kubeProxyVersion ?? '',
          provider_id: spec?.providerID ?? '',
          pod_cidr: spec?.podCIDR ?? '',
          system_uuid: info?.systemUUID ?? '',
          internal_ip: ip ?? '',
        }),
      ]
    }),
  )
  yield gauge('kube_node_created', 'Creation time, Unix timestamp.', each(createdAt))
  yield gauge(
    'kube_node_role',
    'Roles of the node.',
    each(({ metadata }, labels) =>
      Object.keys(metadata.labels ?? {})
        .filter((key) => key.startsWith(rolePrefix))
        .map((key) => singleFigure(1, { ...labels, role: key.slice(rolePrefix.length) })),
    ),
  )
  yield gauge(
    'kube_node_spec_unschedulable',
    '1 if the node is cordoned.',
    each(({ spec }, labels) => [singleFigure(spec?.unschedulable === true ? 1 : 0, labels)]),
  )
  yield gauge(
    'kube_node_spec_taint',
    'Taints of the node.',
    each(({ spec }, labels) =>
      (spec?.taints ?? []).map(({ key, value = '', effect }) => singleFigure(1, { ...labels, key, value, effect })),
    ),
  )
  yield gauge(
    'kube_node_status_condition',
    'Conditions of the node: 1 for the current status.',
    each(({ status }, labels) =>
      (status?.conditions ?? []).flatMap(({ type, status: now }) =>
        truths.map((truth) =>
          singleFigure(now.toLowerCase() === truth ? 1 : 0, { ...labels, condition: type, status: truth }),
        ),
      ),
    ),
  )
  yield gauge(
    'kube_node_status_capacity',
    'Capacity of the node.',
    each(({ status }, labels) => amounts(status?.capacity, labels)),
  )
  yield gauge(
    'kube_node_status_allocatable',
    'Resources of the node that pods can request.',
    each(({ status }, labels) => amounts(status?.allocatable, labels)),
  )
}
