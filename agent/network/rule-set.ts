/** What a part of the network wants in the table of rules, as data. Rules are in the language of nft(8). */

/** Name of the nftables tables that Bramble writes, one for each IP family. */
export const tableName = 'bramble'

/** Where the kernel enters a chain; chains of one hook run in the order of their priorities. */
export type BaseHook = {
  readonly type: 'filter' | 'nat'
  readonly hook: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting'
  readonly priority: number
}

export type RuleChain = {
  /** undefined: the chain is entered by jumps only. */
  readonly base?: BaseHook
  /** Each a rule without its table and chain: `ip daddr 10.96.0.7 tcp dport 80 goto web`. */
  readonly rules: readonly string[]
}

/** A set or a map. What changes of it, other than its elements, needs another name: rules may refer to it. */
export type RuleElements = {
  readonly kind: 'set' | 'map'
  /** `ipv4_addr`; of a map `ipv4_addr . inet_proto . inet_service : verdict`. */
  readonly type: string
  readonly flags?: readonly ('interval' | 'dynamic' | 'timeout')[]
  readonly timeoutSeconds?: number
  /** The most elements of a set that packets fill. */
  readonly size?: number
  /** Key → value, both as nft prints them; the values of a set are ''. Undefined: packets fill it, and it outlives a restart. */
  readonly elements: ReadonlyMap<string, string> | undefined
}

/** Names belong to one part. Chains and sets that did not change are compared by identity first: reuse them. */
export type RuleSet = {
  readonly chains: ReadonlyMap<string, RuleChain>
  readonly sets: ReadonlyMap<string, RuleElements>
}

export const noRules: RuleSet = { chains: new Map(), sets: new Map() }
