/** core/v1 Endpoints (pkg/registry/core/endpoint/strategy.go). */
import type { Endpoints } from '../../../../api/network/endpoints.ts'
import { resources } from '../../../../api/resources.ts'
import { hostPort } from '../../../../api/text/ip-address.ts'
import { endpointsProblems } from '../../../../api/validation/endpoints-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { someOf } from './endpoint-texts.ts'

const endpointsTable: TableOf<Endpoints> = {
  columns: tableColumns('Name', 'Endpoints', 'Age'),
  cells: ({ metadata, subsets = [] }, nowMs) => {
    const texts = subsets.flatMap(({ addresses = [], ports = [] }) =>
      ports.length === 0
        ? addresses.map(({ ip }) => ip)
        : ports.flatMap(({ port }) => addresses.map(({ ip }) => hostPort(ip, port))),
    )
    const age = ageOf(metadata.creationTimestamp, nowMs)
    return [metadata.name ?? '', subsets.length === 0 ? '<none>' : orNone(someOf(texts)), age]
  },
}

export const endpointsStrategy: KindStrategy<Endpoints> = {
  ...resources.endpoints,
  createdByUpdate: true,
  table: endpointsTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (endpoints) => {
    const { subsets } = endpoints
    if (subsets === undefined) return endpoints
    const complete = subsets.map((subset) => {
      if (subset.ports === undefined) return subset
      return { ...subset, ports: subset.ports.map((port) => ({ ...port, protocol: port.protocol || 'TCP' })) }
    })
    return { ...endpoints, subsets: complete }
  },
  validateCreate: endpointsProblems,
  validateUpdate: (old, now) => (equalJSON(old.subsets ?? [], now.subsets ?? []) ? [] : endpointsProblems(now)),
}
