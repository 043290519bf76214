/** core/v1 Namespace (pkg/registry/core/namespace/strategy.go). */
import { dnsLabelProblem, qualifiedNameProblem } from '../../../api/names.ts'
import { contentFinalizer, type Namespace } from '../../../api/namespace.ts'
import { invalid, type Problem } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { problemsWith } from '../../../api/validation/metadata-validation.ts'
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
  subresources: {
    status: { ...statusSubresource, prepareForUpdate: withStoredSpec },
    // A namespace stays until its content is gone and this list is empty, but for "kubernetes", which stands for the content.
    finalize: {
      access: 'update',
      writes: 'spec',
      change: (stored, { spec }) => ({ ...stored, spec: { finalizers: spec?.finalizers ?? [] } }),
      prepareForUpdate: (_, now) => now,
    },
  },
  nameProblem: dnsLabelProblem,
  withDefaults(namespace) {
    const named = { 'kubernetes.io/metadata.name': namespace.metadata.name ?? '' }
    const metadata = { ...namespace.metadata, labels: { ...namespace.metadata.labels, ...named } }
    return { ...namespace, metadata }
  },
  prepareForCreate({ spec, ...namespace }) {
    const finalizers = [...new Set([...(spec?.finalizers ?? []), contentFinalizer])]
    return { ...namespace, spec: { finalizers }, status: { phase: 'Active' } }
  },
  prepareForUpdate: withStoredSpec,
  validateCreate: finalizerProblems,
  validateUpdate: (_, now) => finalizerProblems(now),
  podSecurity: { judges: 'namespace' },
  hasNoCollectionDeletion: true,
  // immortalNamespaces in staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go.
  undeletable: {
    names: ['default', 'kube-system', 'kube-public', 'kube-node-lease'],
    because: 'this namespace may not be deleted',
  },
}

/** Only `finalize` writes the spec. */
function withStoredSpec({ spec }: Namespace, { spec: _, ...now }: Namespace): Namespace {
  return { ...now, ...(spec && { spec }) }
}

/** ValidateFinalizerName in pkg/apis/core/validation/validation.go. */
function finalizerProblems({ spec }: Namespace): readonly Problem[] {
  return (spec?.finalizers ?? []).flatMap((name, index) => {
    const field = `spec.finalizers[${index}]`
    const isStandard = name === contentFinalizer || name.includes('/')
    return [
      ...problemsWith(field, name, qualifiedNameProblem),
      ...(isStandard
        ? []
        : [invalid(field, name, 'name is neither a standard finalizer name nor is it fully qualified')]),
    ]
  })
}
