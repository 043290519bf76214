import type { BalancedService } from '../balanced-services.ts'

/** A Service of namespace `shop` with port 80; longer names are newer. */
export function balancedService(name: string, given: Partial<BalancedService> = {}): BalancedService {
  const usual = {
    createdAt: `2026-01-01T00:00:${name.length}Z`,
    policy: 'Cluster',
    ports: ['TCP/80'],
    families: ['IPv4'],
    ips: [],
  } as const
  return { key: `shop/${name}`, ...usual, endpointNodes: new Set(), ...given }
}
