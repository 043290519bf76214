/** What a machine of the world is made of, and how it registers. */
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import type { Taint } from '../../api/node.ts'
import type { Pool } from '../../api/storage/pools.ts'

export type MachineShape = {
  readonly name: string
  readonly cpus: number
  readonly memoryBytes: number
  readonly storageBytes: number
  readonly architecture: string
  readonly labels: { readonly [name: string]: string }
  readonly taints: readonly Taint[]
  readonly hardware: HardwareIdentity
  /** Where volumes of the class `local-path` are made. */
  readonly pools: readonly Pool[]
}

const gib = 1024 ** 3

/** As a Raspberry Pi 4 with 4 GiB. */
export function usualMachine(name: string): MachineShape {
  return {
    ...{ name, cpus: 4, memoryBytes: 4 * gib, storageBytes: 30 * gib, labels: {}, taints: [] },
    ...{ architecture: 'arm64', pools: [] },
    hardware: { machineID: `machine-of-${name}`, systemUUID: `system-of-${name}` },
  }
}

export function usualMachines(count: number): readonly MachineShape[] {
  return Array.from({ length: count }, (_, i) => usualMachine(`node-${i + 1}`))
}
