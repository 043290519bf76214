/**
 * The last address of each pod, which it asks for again. After a reboot without a controller, Services and policies lead to the addresses
 * of before: pods that got each other's would answer for each other.
 */

export interface PodAddresses {
  of(uid: string): PodAddress
  /** True if one of the addresses is new. */
  observe(uid: string, found: PodAddress): boolean
  /** Those of the last agent, in place of none. */
  restore(addresses: PodAddressMap): void
  /** Forgets all pods but these, and returns their addresses. */
  keep(uids: ReadonlySet<string>): PodAddressMap
}

/** IPv4 address, and the IPv6 address in a fleet with IPv6. */
export type PodAddress = { readonly ip?: string | undefined; readonly ipv6?: string | undefined }

/** By UID: the IPv4 address, or both with a comma between them. */
export type PodAddressMap = { readonly [uid: string]: string }

export function lastAddresses(): PodAddresses {
  let known = new Map<string, string>()
  return {
    of(uid) {
      const [ip, ipv6] = known.get(uid)?.split(',') ?? []
      return { ip, ipv6 }
    },
    observe(uid, { ip, ipv6 }) {
      const text = ipv6 === undefined ? ip : `${ip},${ipv6}`
      if (ip === undefined || text === undefined || known.get(uid) === text) return false
      known.set(uid, text)
      return true
    },
    restore(addresses) {
      known = new Map([...Object.entries(addresses), ...known])
    },
    keep(uids) {
      known = new Map([...known].filter(([uid]) => uids.has(uid)))
      return Object.fromEntries(known)
    },
  }
}
