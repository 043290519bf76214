/**
 * Blocks IPv6 of pods, unless the fleet gives them IPv6 addresses. Without those, policies have IPv4 rules only: a pod
 * that gives itself an IPv6 address, or gets one from the engine, must not bypass them.
 */
import { canaryRule } from '../canary-rule.ts'
import { ipv6Rules } from '../rule-family.ts'
import { tableName } from '../rule-set.ts'

export interface IPv6Guard {
  /**
   * From now on no IPv6 packet enters, leaves or crosses this bridge, or each passes the rules of the fleet. Resolves on a machine without IPv6, too. A bridge for which it
   * rejects is closed by the next `verify` that succeeds.
   */
  close(bridge: string): Promise<void>
  /**
   * Puts in place what could not be before, and sets bridges that were made again. The first call keeps the bridges closed that an
   * earlier agent has closed. It starts no process where nothing is to be done.
   */
  verify(): Promise<void>
  /**
   * Puts in place what another program has removed. `chains`: those of all tables, as nft(8) lists them for another check; undefined:
   * each rule is looked for. Until `verify` or `close` has succeeded it does nothing.
   */
  observe(chains: string | undefined): Promise<void>
  /** By the canary rule, without a process: false proves nothing. True where there is no guard. Never rejects. */
  isAnswering(): Promise<boolean>
  /** Without a table it does nothing. */
  remove(): Promise<void>
}

/** Before the rules of others, such as those of Docker. */
const priority = -10

/** A transaction of nft, which replaces the table `ip6 bramble` as a whole. `bridges`: names of interfaces. */
export function guardTable(bridges: readonly string[]): string {
  const chain = (hook: 'input' | 'forward' | 'output', rules: readonly string[]) => [
    `  chain ${hook} {`,
    `    type filter hook ${hook} priority ${priority}; policy accept;`,
    ...rules.map((rule) => `    ${rule}`),
    '  }',
  ]
  const from = bridges.map((bridge) => `iifname "${bridge}" drop`)
  const to = bridges.map((bridge) => `oifname "${bridge}" drop`)
  return [
    // `delete` of what is not there fails; `add` of what is there does nothing.
    `add table ip6 ${tableName}`,
    `delete table ip6 ${tableName}`,
    `table ip6 ${tableName} {`,
    ...[
      ...chain('input', from),
      ...chain('forward', [...from, ...to]),
      ...chain('output', [...to, canaryRule(ipv6Rules)]),
    ],
    '}',
    '',
  ].join('\n')
}
