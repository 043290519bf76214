/** Nodes as figures: kube-state-metrics' `kube_node_*`. */
import type { Node } from '../../../api/node.ts'
import { gauge, type MetricFamily, type MetricSample } from '../../../daemon/prometheus-text.ts'
import { type AmountReader, createdAt, flat, type MetricLabels, singleFigure, truths } from './figures.ts'

const rolePrefix = 'node-role.kubernetes.io/'

export function* nodeFamilies(nodes: readonly Node[], amounts: AmountReader): Iterable<MetricFamily> {
  const each = (samplesOf: (node: Node, labels: MetricLabels) => Iterable<MetricSample>) =>
    flat(nodes, (node) => samplesOf(node, { node: node.metadata.name }))
  yield gauge(
    'kube_node_info',
    'The node.',
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
  yield gauge('kube_node_created', 'When it was registered.', each(createdAt))
  yield gauge(
    'kube_node_role',
    'Its roles.',
    each(({ metadata }, labels) =>
      Object.keys(metadata.labels ?? {})
        .filter((key) => key.startsWith(rolePrefix))
        .map((key) => singleFigure(1, { ...labels, role: key.slice(rolePrefix.length) })),
    ),
  )
  yield gauge(
    'kube_node_spec_unschedulable',
    '1: no pods come to it.',
    each(({ spec }, labels) => [singleFigure(spec?.unschedulable === true ? 1 : 0, labels)]),
  )
  yield gauge(
    'kube_node_spec_taint',
    'Its taints.',
    each(({ spec }, labels) =>
      (spec?.taints ?? []).map(({ key, value = '', effect }) => singleFigure(1, { ...labels, key, value, effect })),
    ),
  )
  yield gauge(
    'kube_node_status_condition',
    'Its conditions: 1 for what each of them is.',
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
    'What it has.',
    each(({ status }, labels) => amounts(status?.capacity, labels)),
  )
  yield gauge(
    'kube_node_status_allocatable',
    'What pods may have of it.',
    each(({ status }, labels) => amounts(status?.allocatable, labels)),
  )
}
