/** networking.k8s.io/v1 Ingress (pkg/registry/networking/ingress/strategy.go). */

import { defaultClassName } from '../../../../api/admission/default-class.ts'
import type { Ingress } from '../../../../api/network/ingress.ts'
import type { IngressClass } from '../../../../api/network/ingress-class.ts'
import { resources } from '../../../../api/resources.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import {
  ingressClassAnnotation,
  ingressProblems,
  ingressStatusProblems,
  newIngressProblems,
} from './ingress-problems.ts'

const shownHosts = 3

const ingressTable: TableOf<Ingress> = {
  columns: tableColumns('Name', 'Class', 'Hosts', 'Address', 'Ports', 'Age'),
  cells: ({ metadata, spec = {}, status }, nowMs) => {
    const { ingressClassName, rules = [], tls = [] } = spec
    const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '')
    return [
      metadata.name ?? '',
      orNone(ingressClassName),
      hostsOf(rules.map(({ host = '' }) => host)),
      [...new Set(addresses.filter((address) => address !== ''))].sort().join(),
      tls.length > 0 ? '80, 443' : '80',
      ageOf(metadata.creationTimestamp, nowMs),
    ]
  },
}

/** `a.example,b.example,c.example + 2 more...`; `*` for rules without a host (formatHosts, which counts rules, not hosts). */
function hostsOf(hosts: readonly string[]): string {
  const named = hosts.flatMap((host, index) => (host === '' ? [] : [{ host, index }]))
  if (named.length === 0) return '*'
  const shown = named.slice(0, shownHosts)
  const text = shown.map(({ host }) => host).join()
  const last = shown[shownHosts - 1]
  const hasMore = last !== undefined && last.index < hosts.length - 1
  return hasMore ? `${text} + ${hosts.length - shownHosts} more...` : text
}

export const ingressStrategy: KindStrategy<Ingress> = {
  ...resources.ingresses,
  table: ingressTable,
  selectableFields: [],
  subresources: { status: { ...statusSubresource, validateUpdate: (_, now) => ingressStatusProblems(now) } },
  emptyStatus: { loadBalancer: {} },
  prepareForCreate: ({ status: _, ...ingress }) => ingress,
  warningsOnCreate: ({ metadata, spec }) =>
    metadata.annotations?.[ingressClassAnnotation] !== undefined && spec?.ingressClassName === undefined
      ? [`annotation "${ingressClassAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
  validateCreate: newIngressProblems,
  validateUpdate: (_, now) => ingressProblems(now),
  async admitCreate({ metadata, spec }, _, { store }) {
    if (spec?.ingressClassName !== undefined || metadata.annotations?.[ingressClassAnnotation] !== undefined) return {}
    const ingressClassName = defaultIngressClass((await store.list('ingressclasses')).items)
    if (ingressClassName === undefined) return {}
    return { mutate: (ingress) => ({ ...ingress, spec: { ...ingress.spec, ingressClassName } }) }
  },
}

const defaultAnnotation = 'ingressclass.kubernetes.io/is-default-class'

/** The class of an Ingress that names none; undefined: there is none. */
export function defaultIngressClass(classes: readonly IngressClass[]): string | undefined {
  return defaultClassName(classes, defaultAnnotation)
}
