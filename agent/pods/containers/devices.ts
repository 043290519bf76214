/**
 * Allocates the devices of this machine to containers. A device is identified by its number, because it can have several paths. It
 * belongs to one container at a time, or to as many as the configuration allows, and the container keeps it over restarts.
 */

import { isDevice } from '../../../api/node/device-names.ts'
import type { Container } from '../../../api/pod.ts'
import { quantityToNumber } from '../../../api/quantity.ts'
import type { ContainerDevice, ContainerIdentity, ContainerRuntime, RuntimeContainer } from '../../runtime/runtime.ts'

export type DeviceFile = ContainerDevice & {
  /** Its type and number: equal for all paths of one device. */
  readonly number: string
}

/** One device, or a group of devices that are given together. */
export type MachineDevice = {
  readonly files: readonly DeviceFile[]
  /** How many containers may have it at a time. */
  readonly shared: number
}

/** By resource, as found: `bramble.dev/ttyUSB0` → `/dev/ttyUSB0`. One device can be found more than once. */
export type MachineDevices = ReadonlyMap<string, readonly MachineDevice[]>

export type Allocation =
  | { readonly ok: true; readonly devices: readonly ContainerDevice[] }
  | { readonly ok: false; readonly message: string }

type Who = Pick<ContainerIdentity, 'podUID' | 'containerName'>

export interface DeviceAllocator {
  /** Holds the devices until `release`, because no container shows yet that they are in use. */
  allocate(who: Who, container: Container): Promise<Allocation>
  /** The container was created, or will not be. */
  release(who: Who): void
}

export interface DeviceReader {
  /** The devices that are declared in the configuration and connected now. */
  list(): Promise<MachineDevices>
  /** The number of the device at a path of this machine; undefined: there is none. */
  numberOf(path: string): Promise<string | undefined>
}

export type DeviceNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'listContainers'>
  readonly devices: DeviceReader
}

export function deviceAllocator({ runtime, devices }: DeviceNeeds): DeviceAllocator {
  const held = new Map<string, ReadonlySet<string>>()

  return {
    async allocate(who, container) {
      const asked = askedDevices(container)
      if (asked.length === 0) return { ok: true, devices: [] }
      // A container that is created while this lists the containers is missing in the list.
      const heldBefore = [...held]
      const [present, containers] = await Promise.all([devices.list(), runtime.listContainers()])
      const numbers = await numbersOf(containers, devices)
      const allocation = chooseDevices(asked, present, {
        who,
        containers,
        numbers,
        held: new Map([...heldBefore, ...held]),
      })
      if (allocation.ok) held.set(keyOf(who), new Set(allocation.numbers))
      return allocation.ok ? { ok: true, devices: allocation.devices } : allocation
    },
    release(who) {
      held.delete(keyOf(who))
    },
  }
}

/** A restarted agent recognizes the devices of running containers by their numbers, too. */
async function numbersOf(
  containers: readonly RuntimeContainer[],
  { numberOf }: DeviceReader,
): Promise<ReadonlyMap<string, string>> {
  const paths = new Set(containers.flatMap(({ devices = [] }) => devices.map(({ source }) => source)))
  const found = [...paths].map(async (path) => [path, await numberOf(path)] as const)
  return new Map((await Promise.all(found)).flatMap(([path, number]) => (number === undefined ? [] : [[path, number]])))
}

/** Devices are requested in whole numbers. */
function askedDevices({ resources }: Container): readonly (readonly [string, number])[] {
  const { limits = {}, requests = {} } = resources ?? {}
  return Object.entries({ ...limits, ...requests })
    .map(([name, quantity]) => [name, quantityToNumber(quantity)] as const)
    .filter(([name, count]) => isDevice(name) && count > 0)
}

/** Number of devices of each resource that pods may request; one that can be shared counts as often. */
export function deviceCapacity(found: MachineDevices): { readonly [resource: string]: number } {
  return Object.fromEntries([...distinctDevices(found)].map(([resource, devices]) => [resource, countOf(devices)]))
}

/**
 * Without further paths of the same devices. A device of several resources counts in each, as with device plugins in
 * Kubernetes; the lowest `shared` applies to it in all of them.
 */
function distinctDevices(found: MachineDevices): MachineDevices {
  const limits = new Map<string, number>()
  for (const { files, shared } of [...found.values()].flat()) {
    for (const { number } of files) limits.set(number, Math.min(shared, limits.get(number) ?? shared))
  }
  const distinct = (devices: readonly MachineDevice[]) => {
    const seen = new Set<string>()
    return devices.flatMap(({ files, shared }) => {
      if (files.some(({ number }) => seen.has(number))) return []
      for (const { number } of files) seen.add(number)
      return [{ files, shared: Math.min(...files.map(({ number }) => limits.get(number) ?? shared)) }]
    })
  }
  return new Map([...found].map(([resource, devices]) => [resource, distinct(devices)]))
}

function countOf(devices: readonly MachineDevice[]): number {
  return devices.reduce((sum, { shared }) => sum + shared, 0)
}

type Taken = {
  readonly who: Who
  readonly containers: readonly RuntimeContainer[]
  /** Numbers of the devices of these containers, by path. */
  readonly numbers: ReadonlyMap<string, string>
  /** Numbers of the devices held for containers that are being created, by container. */
  readonly held: ReadonlyMap<string, ReadonlySet<string>>
}

type Choice =
  | { readonly ok: true; readonly devices: readonly ContainerDevice[]; readonly numbers: readonly string[] }
  | { readonly ok: false; readonly message: string }

export function chooseDevices(
  asked: readonly (readonly [string, number])[],
  found: MachineDevices,
  taken: Taken,
): Choice {
  const present = distinctDevices(found)
  const users = usersByNumber(taken)
  const own = taken.containers.filter(({ identity }) => keyOf(identity) === keyOf(taken.who))
  const before = own.flatMap(({ devices = [] }) => devices)
  const freeOf = ({ files, shared }: MachineDevice) =>
    Math.max(0, shared - Math.max(...files.map(({ number }) => users.get(number) ?? 0)))
  const chosen: DeviceFile[] = []
  for (const [resource, count] of asked) {
    const devices = present.get(resource)
    if (devices === undefined)
      return { ok: false, message: `this node has no ${resource}: its configuration declares none` }
    const free = devices.filter((device) => freeOf(device) > 0)
    const freeCount = free.reduce((sum, device) => sum + freeOf(device), 0)
    if (freeCount < count) {
      const message = `${count} of ${resource} requested, ${countOf(devices)} on this machine, ${freeCount} free`
      return { ok: false, message }
    }
    const first = free
      .map((device) => ({ device, kept: keptBy(before, device, taken.numbers), free: freeOf(device) }))
      .toSorted((a, b) => b.kept - a.kept || b.free - a.free)
    // Different devices. If there are fewer, the rest are further shares of the same, which add nothing to the container.
    const files = first.slice(0, count).flatMap(({ device }) => device.files)
    for (const number of new Set(files.map((file) => file.number))) users.set(number, (users.get(number) ?? 0) + 1)
    chosen.push(...files)
  }
  return placed(chosen)
}

function usersByNumber({ who, containers, numbers, held }: Taken): Map<string, number> {
  const ended = ({ state }: RuntimeContainer) => state === 'exited' || state === 'dead'
  const inUse = containers
    .filter((one) => !ended(one))
    .map(({ identity, devices = [] }) => {
      const used = devices.flatMap(({ source }) => numbers.get(source) ?? [])
      return [keyOf(identity), used] as const
    })
  const byContainer = new Map<string, ReadonlySet<string>>()
  for (const [key, used] of [...inUse, ...held]) {
    byContainer.set(key, new Set([...(byContainer.get(key) ?? []), ...used]))
  }
  byContainer.delete(keyOf(who))
  const users = new Map<string, number>()
  for (const number of [...byContainer.values()].flatMap((used) => [...used])) {
    users.set(number, (users.get(number) ?? 0) + 1)
  }
  return users
}

/**
 * Higher for a device that the container had before. First by its path in the container: a device that was plugged in again or that a
 * reboot renumbered keeps its link in `/dev/serial/by-id`, but not its number.
 */
function keptBy(
  before: readonly ContainerDevice[],
  { files }: MachineDevice,
  numbers: ReadonlyMap<string, string>,
): number {
  const samePath = before.some(({ target }) => files.some((file) => file.target === target))
  const sameNumber = before.some(({ source }) => files.some((file) => file.number === numbers.get(source)))
  return (samePath ? 2 : 0) + (sameNumber ? 1 : 0)
}

function placed(files: readonly DeviceFile[]): Choice {
  const sources = new Map<string, string>()
  for (const { source, target } of files) {
    const other = sources.get(target) ?? source
    if (other !== source) {
      const message = `${other} and ${source} would both be ${target} in the container: request one of them, or give them different paths in \`devices\` of the agent's configuration`
      return { ok: false, message }
    }
    sources.set(target, source)
  }
  return {
    ok: true,
    devices: [...sources].map(([target, source]) => ({ source, target })),
    numbers: files.map(({ number }) => number),
  }
}

function keyOf({ podUID, containerName }: Who): string {
  return `${podUID}/${containerName}`
}
