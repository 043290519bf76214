/** networking.k8s.io/v1 IngressClass (pkg/registry/networking/ingressclass/strategy.go). */
import type { IngressClass } from '../../../../api/network/ingress-class.ts'
import { resources } from '../../../../api/resources.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { ingressClassChangeProblems, ingressClassProblems } from './ingress-problems.ts'

const ingressClassTable: TableOf<IngressClass> = {
  columns: tableColumns('Name', 'Controller', 'Parameters', 'Age'),
  cells: ({ metadata, spec = {} }, nowMs) => {
    const { controller = '', parameters } = spec
    const group = parameters?.apiGroup === undefined ? '' : `.${parameters.apiGroup}`
    return [
      metadata.name ?? '',
      controller,
      parameters === undefined ? '<none>' : `${parameters.kind}${group}/${parameters.name}`,
      ageOf(metadata.creationTimestamp, nowMs),
    ]
  },
}

export const ingressClassStrategy: KindStrategy<IngressClass> = {
  ...resources.ingressclasses,
  table: ingressClassTable,
  selectableFields: [],
  subresources: {},
  withDefaults,
  validateCreate: ingressClassProblems,
  validateUpdate: ingressClassChangeProblems,
}

/** Parameters are those of the whole fleet unless their author writes otherwise (SetDefaults_IngressClass). */
function withDefaults(one: IngressClass): IngressClass {
  const parameters = one.spec?.parameters
  if (parameters === undefined || parameters.scope !== undefined) return one
  return { ...one, spec: { ...one.spec, parameters: { ...parameters, scope: 'Cluster' } } }
}
