/** Where this node reaches the controllers of its fleet: no Service may lead its connections to them elsewhere. */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isAddressOf, type RuleFamily } from '../rule-family.ts'

/** `IP:PORT`, over TCP; of an IPv6 address without brackets. */
export type ControllerSocket = string

const usualPorts: { readonly [protocol: string]: string } = { 'https:': '443', 'mqtts:': '8883' }

/**
 * `urls`: of the API and of MQTT. Where one has a name for its host, the endpoints of `default/kubernetes` are the addresses that the
 * name may have. `family`: of the addresses.
 */
export function controllerAddresses(
  urls: readonly string[],
  services: ReadonlyMap<string, ServiceState>,
  family: RuleFamily,
): readonly ControllerSocket[] {
  const all = urls.flatMap((url) => (URL.canParse(url) ? [new URL(url)] : []))
  const known = services.get('default/kubernetes')?.endpoints.flatMap(({ addresses }) => addresses) ?? []
  const hosts = new Set([
    ...all.map(({ hostname }) => hostname.replace(/^\[(.*)\]$/, '$1')),
    ...known.map(({ ip }) => ip),
  ])
  const ports = new Set(all.map(({ port, protocol }) => port || usualPorts[protocol]))
  return [...hosts]
    .filter((host) => isAddressOf(family, host))
    .flatMap((host) => [...ports].map((port) => `${host}:${port}`))
    .sort()
}
