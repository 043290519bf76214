/** discovery.k8s.io/v1 EndpointSlice (pkg/registry/discovery/endpointslice/strategy.go). */
import type { EndpointSlice } from '../../../../api/network/endpoint-slice.ts'
import { resources } from '../../../../api/resources.ts'
import { endpointSliceChangeProblems, endpointSliceProblems } from '../../../../api/validation/endpoints-validation.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { someOf } from './endpoint-texts.ts'

const endpointSliceTable: TableOf<EndpointSlice> = {
  columns: tableColumns('Name', 'AddressType', 'Ports', 'Endpoints', 'Age'),
  cells: ({ metadata, addressType, ports = [], endpoints = [] }, nowMs) => [
    metadata.name ?? '',
    addressType,
    someOf(ports.map(({ port, name }) => String(port ?? name ?? '*'))) || '<unset>',
    someOf(endpoints.flatMap(({ addresses }) => addresses)) || '<unset>',
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const endpointSliceStrategy: KindStrategy<EndpointSlice> = {
  ...resources.endpointslices,
  table: endpointSliceTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (slice) => ({
    ...slice,
    endpoints: slice.endpoints ?? [],
    ...(slice.ports && {
      ports: slice.ports.map((port) => ({ ...port, name: port.name ?? '', protocol: port.protocol ?? 'TCP' })),
    }),
  }),
  // The path is that of Kubernetes (warnOnDeprecatedAddressType).
  warningsOnCreate: ({ addressType }) =>
    addressType === 'FQDN' ? ['spec.addressType: FQDN endpoints are deprecated'] : [],
  validateCreate: endpointSliceProblems,
  validateUpdate: endpointSliceChangeProblems,
}
