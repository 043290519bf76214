/**
 * The inventory of the machine, read once at start. The values that Kubernetes needs are in files. systeminformation adds
 * descriptions for people (board, processor); it is loaded only for that, and may start a few programs.
 */
import { readdir, readFile, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { within } from '../../../daemon/deadline.ts'
import type { MachineCapacity } from '../../node/status/capacity.ts'
import type { SystemFacts } from '../../node/status/node-status.ts'
import { readBootID, readHardwareIdentity } from './host-identity.ts'
import type { FilesystemStats } from './host-signals.ts'
import { countOfList, machineMemoryBytes } from './kernel-files.ts'

export type InventoryNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly dataDirectory: string
  readonly statfs?: (path: string) => Promise<FilesystemStats>
}

export type Inventory = { readonly machine: MachineCapacity; readonly system: SystemFacts }

export async function readInventory({ root, dataDirectory, statfs: ask = statfs }: InventoryNeeds): Promise<Inventory> {
  const [machine, system] = await Promise.all([readMachine(root, dataDirectory, ask), readSystem(root)])
  return { machine, system }
}

async function readMachine(
  root: string,
  dataDirectory: string,
  ask: (path: string) => Promise<FilesystemStats>,
): Promise<MachineCapacity> {
  const [cpus, meminfo, disk, hugePageBytes] = await Promise.all([
    readCPUs(root),
    readFile(join(root, 'proc/meminfo'), 'utf8'),
    ask(dataDirectory),
    readHugePages(root),
  ])
  return {
    cpus,
    memoryBytes: machineMemoryBytes(root, meminfo),
    ephemeralStorageBytes: disk.blocks * disk.bsize,
    hugePageBytes,
  }
}

async function readCPUs(root: string): Promise<number> {
  const online = await textOf(join(root, 'sys/devices/system/cpu/online'))
  if (online !== undefined) return countOfList(online)
  const cpuinfo = (await textOf(join(root, 'proc/cpuinfo'))) ?? ''
  return cpuinfo.match(/^processor\s*:/gm)?.length ?? 1
}

async function readHugePages(root: string): Promise<MachineCapacity['hugePageBytes']> {
  const folder = join(root, 'sys/kernel/mm/hugepages')
  const sizes = await readdir(folder).catch(() => []) // a kernel without huge pages
  const amounts = await Promise.all(
    sizes.map(async (size) => {
      const kib = Number(/^hugepages-(\d+)kB$/.exec(size)?.[1])
      const pages = Number((await textOf(join(folder, size, 'nr_hugepages'))) ?? 0)
      return [`hugepages-${pageSize(kib)}`, pages * kib * 1024] as const
    }),
  )
  return Object.fromEntries(amounts)
}

function pageSize(kib: number): string {
  if (kib % 2 ** 20 === 0) return `${kib / 2 ** 20}Gi`
  return kib % 1024 === 0 ? `${kib / 1024}Mi` : `${kib}Ki`
}

/** The operating system; what cannot be read is empty. */
export async function readSystem(root: string): Promise<SystemFacts> {
  const [identity, bootID, kernel, release] = await Promise.all([
    readHardwareIdentity(root),
    readBootID(root),
    textOf(join(root, 'proc/sys/kernel/osrelease')),
    textOf(join(root, 'etc/os-release')),
  ])
  const machineID = identity.machineID ?? ''
  return {
    machineID,
    systemUUID: identity.systemUUID ?? machineID,
    bootID: bootID ?? '',
    kernelVersion: kernel ?? '',
    osImage: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(release ?? '')?.[1] ?? 'Linux',
    operatingSystem: 'linux',
    architecture: architectures[process.arch] ?? process.arch,
  }
}

/** Node.js' name of an architecture → Go's, which labels and images use. */
const architectures: { readonly [arch: string]: string } = { x64: 'amd64', ia32: '386' }

/** Shown to people as annotations of the node. Unreadable values are omitted. */
export type MachineDescription = { readonly board?: string; readonly processor?: string }

const describeMs = 10_000

/** The board and the processor. Never rejects: a machine without a description is still a node. */
export async function describeMachine(): Promise<MachineDescription> {
  try {
    const { default: si } = await import('systeminformation')
    const [system, cpu] = await within(describeMs, 'No inventory', Promise.all([si.system(), si.cpu()]))
    return machineDescription(system, cpu)
  } catch {
    return {}
  }
}

type BoardFacts = { readonly manufacturer: string; readonly model: string; readonly version: string }
type ProcessorFacts = { readonly manufacturer: string; readonly brand: string }

/** The distinct words that carry a meaning; absent where there is none. */
export function machineDescription(system: BoardFacts, cpu: ProcessorFacts): MachineDescription {
  const board = joined(system.manufacturer, system.model, system.version)
  const processor = joined(cpu.manufacturer, cpu.brand)
  return { ...(board === '' ? {} : { board }), ...(processor === '' ? {} : { processor }) }
}

/** Without what another of the words contains. */
function joined(...words: readonly string[]): string {
  const meaningful = words.map((word) => word.trim()).filter((word) => word !== '' && word !== '-')
  return meaningful
    .filter((word, i) => !meaningful.some((other, j) => j !== i && other.includes(word) && (other !== word || j < i)))
    .join(' ')
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch {
    return undefined
  }
}
