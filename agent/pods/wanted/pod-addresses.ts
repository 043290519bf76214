/**
 * The last address of each pod, which it asks for again. After a reboot without a controller, Services and policies lead to the addresses
 * of before: pods that got each other's would answer for each other.
 */

export interface PodAddresses {
  of(uid: string): string | undefined
  /** True if the address is new. */
  observe(uid: string, ip: string | undefined): boolean
  /** Those of the last agent, in place of none. */
  restore(addresses: PodAddressMap): void
  /** Of these pods; the others are forgotten. */
  keep(uids: ReadonlySet<string>): PodAddressMap
}

/** By UID. */
export type PodAddressMap = { readonly [uid: string]: string }

export function lastAddresses(): PodAddresses {
  let known = new Map<string, string>()
  return {
    of: (uid) => known.get(uid),
    observe(uid, ip) {
      if (ip === undefined || known.get(uid) === ip) return false
      known.set(uid, ip)
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
