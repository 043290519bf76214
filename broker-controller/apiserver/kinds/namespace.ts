/** core/v1 Namespace (pkg/registry/core/namespace/strategy.go). */
import { dnsLabelProblem } from '../../../api/names.ts'
import type { Namespace } from '../../../api/namespace.ts'
import { resources } from '../../../api/resources.ts'
import { ageOf, type TableOf, tableColumns } from '../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../handlers/strategy.ts'

const namespaceTable: TableOf<Namespace> = {
  columns: tableColumns('Name', 'Status', 'Age'),
  cells: ({ metadata, status }, nowMs) => [
    metadata.name ?? '',
    status?.phase ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const namespaceStrategy: KindStrategy<Namespace> = {
  ...resources.namespaces,
  table: namespaceTable,
  selectableFields: ['status.phase'],
  subresources: { status: statusSubresource },
  nameProblem: dnsLabelProblem,
  withDefaults(namespace) {
    const named = { 'kubernetes.io/metadata.name': namespace.metadata.name ?? '' }
    const metadata = { ...namespace.metadata, labels: { ...namespace.metadata.labels, ...named } }
    return { ...namespace, metadata, spec: { finalizers: ['kubernetes'] } }
  },
  prepareForCreate: (namespace) => ({ ...namespace, status: { phase: 'Active' } }),
  // immortalNamespaces in staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go.
  undeletable: {
    names: ['default', 'kube-system', 'kube-public', 'kube-node-lease'],
    because: 'this namespace may not be deleted',
  },
}
