/** Where this node reaches the controllers of its fleet: no Service may lead its connections to them elsewhere. */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isIPv4 } from '../../../api/text/ip-address.ts'

/** `IP:PORT`, over TCP. */
export type ControllerSocket = string

const usualPorts: { readonly [protocol: string]: string } = { 'https:': '443', 'mqtts:': '8883' }

/**
 * `urls`: of the API and of MQTT. Where one has a name for its host, the endpoints of `default/kubernetes` are the addresses that the
 * name may have.
 */
export function controllerAddresses(
  urls: readonly string[],
  services: ReadonlyMap<string, ServiceState>,
): readonly ControllerSocket[] {
  const all = urls.flatMap((url) => (URL.canParse(url) ? [new URL(url)] : []))
  const known = services.get('default/kubernetes')?.endpoints.flatMap(({ addresses }) => addresses) ?? []
  const hosts = new Set([...all.map(({ hostname }) => hostname), ...known.map(({ ip }) => ip)])
  const ports = new Set(all.map(({ port, protocol }) => port || usualPorts[protocol]))
  return [...hosts]
    .filter(isIPv4)
    .flatMap((host) => [...ports].map((port) => `${host}:${port}`))
    .sort()
}
