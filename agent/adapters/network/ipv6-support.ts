/** Whether this machine has IPv6. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { textOf } from '../kernel/kernel-files.ts'

/** False where the kernel has none, or `net.ipv6.conf.all.disable_ipv6` is 1. `root`: where the kernel's files are found. */
export function hasIPv6(root: string): boolean {
  if (!existsSync(join(root, 'proc/net/if_inet6'))) return false
  return textOf(join(root, 'proc/sys/net/ipv6/conf/all/disable_ipv6'))?.trim() !== '1'
}
