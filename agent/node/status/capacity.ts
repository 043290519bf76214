/** Capacity of the machine, and the allocatable part. */

/** Amounts by Kubernetes' resource names: cpu in cores, memory and storage in bytes, pods as a count. */
export type Amounts = { readonly [resource: string]: number }

/** Read at the start of the agent. */
export type MachineCapacity = {
  readonly cpus: number
  readonly memoryBytes: number
  /** The size of the filesystem with the data directory. */
  readonly ephemeralStorageBytes: number
  /** Reserved huge pages, by the name of their resource: `hugepages-2Mi`. */
  readonly hugePageBytes: Amounts
}

export type PodLimits = {
  readonly maxPods: number
  /** 0: no limit per core. */
  readonly podsPerCore: number
}

export function capacityOf(machine: MachineCapacity, { maxPods, podsPerCore }: PodLimits): Amounts {
  return {
    cpu: machine.cpus,
    memory: machine.memoryBytes,
    'ephemeral-storage': machine.ephemeralStorageBytes,
    ...machine.hugePageBytes,
    pods: podsPerCore > 0 ? Math.min(machine.cpus * podsPerCore, maxPods) : maxPods,
  }
}

/**
 * Capacity without the reservations: for Bramble, for the system, and below the hard eviction thresholds. Huge pages do not
 * count as memory. A reservation of a resource that the machine does not have is ignored.
 */
export function allocatableOf(capacity: Amounts, reserved: readonly Amounts[]): Amounts {
  const left = Object.entries(capacity).map(([resource, amount]) => {
    const taken = reserved.reduce((sum, amounts) => sum + (amounts[resource] ?? 0), 0)
    const pages = resource === 'memory' ? hugePagesOf(capacity) : 0
    return [resource, Math.max(0, Math.max(0, amount - taken) - pages)] as const
  })
  return Object.fromEntries(left)
}

/** Resources that a node needs to be Ready, and that this one lacks. */
export function missingCapacity(capacity: Amounts): readonly string[] {
  return ['cpu', 'memory', 'pods', 'ephemeral-storage'].filter((resource) => capacity[resource] === undefined)
}

/** As Kubernetes writes amounts: `4`, `3800m`, `3884392Ki`. */
export function asQuantities(amounts: Amounts): { readonly [resource: string]: string } {
  return Object.fromEntries(
    Object.entries(amounts).map(([resource, amount]) => [resource, quantityOf(resource, amount)]),
  )
}

function quantityOf(resource: string, amount: number): string {
  if (resource === 'cpu') {
    const milli = Math.floor(amount * 1000 + 1e-6)
    return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`
  }
  if (resource.startsWith('hugepages-') && amount % 2 ** 20 === 0 && amount > 0) return `${amount / 2 ** 20}Mi`
  if (resource === 'pods' || amount === 0 || amount % 1024 !== 0) return String(Math.floor(amount))
  return `${amount / 1024}Ki`
}

function hugePagesOf(capacity: Amounts): number {
  return Object.entries(capacity)
    .filter(([resource]) => resource.startsWith('hugepages-'))
    .reduce((sum, [, amount]) => sum + amount, 0)
}
