/** The Service of the API on this node: containers are given its address where packets to it arrive. */
import { ipv4Rules } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import { addressesOf } from './rule-text.ts'
import type { ServiceRules } from './service-manager.ts'

const name = 'default/kubernetes'

/**
 * `applied`: what the kernel has. Undefined: the fleet has no network, its rules are not in place, or the controller is known by a
 * name only, which is not an endpoint.
 */
export function apiService(
  rules: ServiceRules | undefined,
  applied: readonly RuleSet[],
): { readonly host: string; readonly port: number } | undefined {
  const service = rules?.services.get(name)
  if (rules === undefined || service === undefined || !applied.includes(rules)) return undefined
  const [host] = addressesOf(ipv4Rules, service.clusterIPs)
  const [port] = service.ports
  const elements = rules.sets.get('service-ips')?.elements
  if (host === undefined || port === undefined || elements?.has(`${host} . tcp . ${port.port}`) !== true)
    return undefined
  return { host, port: port.port }
}
