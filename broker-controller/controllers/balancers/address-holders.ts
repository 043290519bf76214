/**
 * Who has which address of the pool, and which Services may have one together: those of one namespace with one value of MetalLB's annotation
 * `allow-shared-ip`, whose ports do not meet and which one node can answer for (as `checkSharing` in its internal/allocator/allocator.go).
 */
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { addressFamily, type BalancedPortKey, type BalancedService, type Sharing } from './balanced-services.ts'

/** What the right to an address depends on. */
export type Sharer = Pick<BalancedService, 'key' | 'ports' | 'sharing'>

/** A Service that is not balanced, and has addresses. `sharing`: this controller withdraws them; without, another program gave them. */
export type OtherHolder = Sharer & Pick<BalancedService, 'ips'>

export interface AddressHolders {
  /** Somebody has the address. */
  has(ip: string): boolean
  /** Why the Service cannot have the address, in one sentence with its remedy; undefined: it can. */
  refusal(ip: string, service: Sharer): string | undefined
  /** To a Service that can have it. What was given once stays given. */
  give(ip: string, service: Sharer): void
  /** An address of the family that Services with which it shares have, and that it can have too. */
  shared(family: IPFamily, service: Sharer): string | undefined
}

type Holder = {
  readonly what: string
  /** undefined: it shares with none. */
  readonly sharing?: Sharing
  /** Who has each port. */
  readonly ports: Map<BalancedPortKey, string>
}

/** Shared addresses that are tried for one Service. Services whose ports meet have an address each; more than these are not examined. */
const mostTried = 16

/** `owned`: addresses that are not for Services, with what has them. */
export function addressHolders(
  owned: Iterable<readonly [ip: string, what: string]>,
  others: readonly OtherHolder[],
): AddressHolders {
  const holders = new Map<string, Holder>()
  /** The addresses of those that share, by family and sharing. */
  const ofSharing = new Map<string, Set<string>>()
  const hold = (ip: string, { key, ports, sharing }: Sharer, what = `Service ${key}`) => {
    const before = holders.get(ip)
    const isJoined = before !== undefined && isSame(before.sharing, sharing)
    const holder = isJoined ? before : { what, ports: new Map(), ...(before === undefined && sharing && { sharing }) }
    for (const port of ports) holder.ports.set(port, what)
    holders.set(ip, holder)
  }
  for (const other of others)
    for (const ip of other.ips) hold(ip, other, other.sharing ? undefined : 'a Service of another load balancer')
  for (const [ip, what] of owned) holders.set(ip, { what, ports: new Map() })

  const refusal = (ip: string, { key, ports, sharing }: Sharer): string | undefined => {
    const holder = holders.get(ip)
    if (holder === undefined) return undefined
    const inUse = `Address ${ip} is in use by ${holder.what}`
    if (sharing?.key === undefined || holder.sharing?.key !== sharing.key) {
      const isNear = holder.what.startsWith(`Service ${key.slice(0, key.indexOf('/') + 1)}`)
      return `${inUse}: request another one, or none${isNear ? ', put the ports of both into one Service, or give both the annotation metallb.io/allow-shared-ip with the same value' : ''}`
    }
    if (holder.sharing.backend !== sharing.backend)
      return `${inUse}: to share it, give both Services externalTrafficPolicy Cluster, or both Local and the same selector`
    const own = `Service ${key}`
    const port = ports.find((one) => (holder.ports.get(one) ?? own) !== own)
    if (port === undefined) return undefined
    return `Port ${port} of address ${ip} is in use by ${holder.ports.get(port)}: change the port, or request another address`
  }

  return {
    has: (ip) => holders.has(ip),
    refusal,
    give(ip, service) {
      hold(ip, service)
      const { sharing } = service
      if (sharing === undefined) return
      const name = nameOf(addressFamily(ip), sharing)
      const known = ofSharing.get(name) ?? new Set()
      ofSharing.set(name, known.add(ip))
    },
    shared(family, service) {
      const { sharing } = service
      if (sharing === undefined) return undefined
      let tried = 0
      for (const ip of ofSharing.get(nameOf(family, sharing)) ?? []) {
        if (refusal(ip, service) === undefined) return ip
        if (++tried === mostTried) return undefined
      }
      return undefined
    },
  }
}

function isSame(one: Sharing | undefined, other: Sharing | undefined): boolean {
  return one !== undefined && one.key === other?.key && one.backend === other.backend
}

function nameOf(family: IPFamily | undefined, { key, backend }: Sharing): string {
  return `${family} ${key} ${backend}`
}
