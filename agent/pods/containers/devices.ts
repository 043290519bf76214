/**
 * Allocates the devices of this machine to containers. A device belongs to one container at a time, and the container keeps it
 * over restarts.
 */

import { isDevice } from '../../../api/node/device-names.ts'
import type { Container } from '../../../api/pod.ts'
import { quantityToNumber } from '../../../api/quantity.ts'
import type { ContainerIdentity, ContainerRuntime, RuntimeContainer } from '../runtime/runtime.ts'

/** Paths by resource: `bramble.dev/ttyUSB0` → `/dev/ttyUSB0`. */
export type MachineDevices = ReadonlyMap<string, readonly string[]>

export type Allocation =
  | { readonly ok: true; readonly paths: readonly string[] }
  | { readonly ok: false; readonly message: string }

type Who = Pick<ContainerIdentity, 'podUID' | 'containerName'>

export interface DeviceAllocator {
  /** Holds the devices until `release`, because no container shows yet that they are in use. */
  allocate(who: Who, container: Container): Promise<Allocation>
  /** The container was created, or will not be. */
  release(who: Who): void
}

export type DeviceNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'listContainers'>
  /** The devices that are declared in the configuration and connected now. */
  readonly devices: () => Promise<MachineDevices>
}

export function deviceAllocator({ runtime, devices }: DeviceNeeds): DeviceAllocator {
  const held = new Map<string, readonly string[]>()

  return {
    async allocate(who, container) {
      const asked = askedDevices(container)
      if (asked.length === 0) return { ok: true, paths: [] }
      const [present, containers] = await Promise.all([devices(), runtime.listContainers()])
      const others = [...held].filter(([key]) => key !== keyOf(who)).flatMap(([, paths]) => paths)
      const allocation = chooseDevices(asked, present, { who, containers, held: others })
      if (allocation.ok) held.set(keyOf(who), allocation.paths)
      return allocation
    },
    release(who) {
      held.delete(keyOf(who))
    },
  }
}

/** Devices are requested in whole numbers. */
function askedDevices({ resources }: Container): readonly (readonly [string, number])[] {
  const { limits = {}, requests = {} } = resources ?? {}
  return Object.entries({ ...limits, ...requests })
    .map(([name, quantity]) => [name, quantityToNumber(quantity)] as const)
    .filter(([name, count]) => isDevice(name) && count > 0)
}

type Taken = {
  readonly who: Who
  readonly containers: readonly RuntimeContainer[]
  /** Devices held for containers that are being created. */
  readonly held: readonly string[]
}

export function chooseDevices(
  asked: readonly (readonly [string, number])[],
  present: MachineDevices,
  { who, containers, held }: Taken,
): Allocation {
  const isOwn = ({ identity }: RuntimeContainer) => keyOf(identity) === keyOf(who)
  const ended = ({ state }: RuntimeContainer) => state === 'exited' || state === 'dead'
  const inUse = containers.filter((one) => !isOwn(one) && !ended(one)).flatMap((one) => one.devices ?? [])
  const taken = new Set([...held, ...inUse])
  const before = new Set(containers.filter(isOwn).flatMap((one) => one.devices ?? []))
  const chosen: string[] = []
  for (const [resource, count] of asked) {
    const paths = present.get(resource)
    if (paths === undefined)
      return { ok: false, message: `this node has no ${resource}: its configuration declares none` }
    const free = paths.filter((path) => !taken.has(path) && !chosen.includes(path))
    const first = free.toSorted((a, b) => Number(before.has(b)) - Number(before.has(a)))
    if (first.length < count) {
      const message = `${count} of ${resource} asked for, ${paths.length} on this machine, ${free.length} free`
      return { ok: false, message }
    }
    chosen.push(...first.slice(0, count))
  }
  return { ok: true, paths: chosen }
}

function keyOf({ podUID, containerName }: Who): string {
  return `${podUID}/${containerName}`
}
