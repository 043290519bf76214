/** The columns of `kubectl get services` (printService in pkg/printers/internalversion/printers.go). */
import type { Service } from '../../../../api/network/service.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'

export const serviceTable: TableOf<Service> = {
  columns: tableColumns('Name', 'Type', 'Cluster-IP', 'External-IP', 'Port(s)', 'Age', 'Selector*'),
  cells: (service, nowMs) => {
    const { metadata, spec = {} } = service
    const ports = (spec.ports ?? []).map(({ port, nodePort = 0, protocol = '' }) =>
      nodePort > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
    )
    const selector = Object.entries(spec.selector ?? {}).map(([key, value]) => `${key}=${value}`)
    return [
      metadata.name ?? '',
      spec.type ?? '',
      orNone(spec.clusterIPs?.[0]),
      externalAddress(service),
      orNone(ports.join()),
      ageOf(metadata.creationTimestamp, nowMs),
      orNone(selector.sort().join()),
    ]
  },
}

function externalAddress({ spec = {}, status }: Service): string {
  const { type, externalIPs = [], externalName = '' } = spec
  if (type === 'ExternalName') return externalName
  if (type !== 'LoadBalancer') return orNone(externalIPs.join())
  const balanced = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname = '' }) => ip || hostname)
  // As loadBalancerStatusStringer: each once, and sorted.
  return [...[...new Set(balanced.filter((text) => text !== ''))].sort(), ...externalIPs].join() || '<pending>'
}
