/**
 * The inventory of the machine from files below `root`: the device tree as the firmware of a Raspberry Pi fills it, and /sys. Starts no
 * process. What cannot be read is omitted.
 */
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { InventoryDisk, InventoryLink, MachineInventory } from '../../../api/node/machine-inventory.ts'
import { boardRevision } from '../../node/inventory/board-revision.ts'

const mostRows = 16
const longestText = 64
const sectorBytes = 512

export async function readMachineInventory(root: string): Promise<MachineInventory> {
  const tree = join(root, 'proc/device-tree')
  const bootloader = join(tree, 'chosen/bootloader')
  const code = (await cell(join(tree, 'system/linux,revision'))) ?? (await revisionOf(join(root, 'proc/cpuinfo')))
  const built = (await cell(join(bootloader, 'build-timestamp'))) ?? (await cell(join(bootloader, 'build_timestamp')))
  const meaning = code === undefined ? undefined : boardRevision(code)
  return {
    ...present({
      model: await line(join(tree, 'model')),
      revision: code?.toString(16).padStart(4, '0'),
      board: meaning?.board,
      memoryMegabytes: meaning?.memoryMegabytes,
      maker: meaning?.maker,
      bootloaderDate: built === undefined ? undefined : new Date(built * 1000).toISOString().slice(0, 10),
      bootloader: await line(join(bootloader, 'version')),
      supplyMilliamps: await cell(join(tree, 'chosen/power/max_current')),
    }),
    disks: await rows(join(root, 'sys/class/block'), diskAt),
    links: await rows(join(root, 'sys/class/net'), linkAt),
  }
}

/** Those with a device behind them: no partitions, no loops, no bridges. */
async function rows<T>(folder: string, read: (path: string, name: string) => Promise<T | undefined>): Promise<T[]> {
  const names = (await readdir(folder).catch(() => [])).sort()
  const found: T[] = []
  for (const name of names) {
    const one = found.length < mostRows ? await read(join(folder, name), name) : undefined
    if (one !== undefined) found.push(one)
  }
  return found
}

/** An SD card and eMMC: Documentation/driver-api/mmc/mmc-dev-attrs.rst of the kernel. */
async function diskAt(path: string, name: string): Promise<InventoryDisk | undefined> {
  const device = join(path, 'device')
  const kind = /^mmcblk\d+$/.test(name)
    ? ((await line(join(device, 'type'))) ?? 'MMC')
    : /^nvme\d+n\d+$/.test(name)
      ? 'NVMe'
      : /^sd[a-z]+$/.test(name)
        ? 'SCSI'
        : undefined
  const sectors = Number(await line(join(path, 'size')))
  if (kind === undefined || !Number.isSafeInteger(sectors) || sectors <= 0) return undefined
  const model = (await line(join(device, 'model'))) ?? (await line(join(device, 'name')))
  const vendor = kind === 'SCSI' ? await line(join(device, 'vendor')) : undefined
  const made = await line(join(device, 'date'))
  return {
    ...{ name, kind, bytes: sectors * sectorBytes },
    ...present({
      model: [vendor, model].filter((word) => word !== undefined).join(' ') || undefined,
      made: made !== undefined && /^\d{2}\/\d{4}$/.test(made) ? made : undefined,
      firmware: (await line(join(device, 'firmware_rev'))) ?? (await line(join(device, 'fwrev'))),
    }),
  }
}

async function linkAt(path: string, name: string): Promise<InventoryLink | undefined> {
  if (!(await exists(join(path, 'device')))) return undefined
  const speed = Number(await line(join(path, 'speed')))
  const driver = await readlink(join(path, 'device/driver')).catch(() => undefined)
  return {
    ...{ name, isWireless: await exists(join(path, 'wireless')) },
    ...present({
      driver: driver === undefined ? undefined : basename(driver).slice(0, longestText),
      // -1: the cable is out. Radios have none.
      megabits: Number.isSafeInteger(speed) && speed > 0 ? speed : undefined,
    }),
  }
}

/** A number of the device tree: 32 bits, the most significant first. */
async function cell(path: string): Promise<number | undefined> {
  const bytes = await readFile(path).catch(() => undefined)
  return bytes?.length === 4 ? bytes.readUInt32BE() : undefined
}

async function revisionOf(cpuinfo: string): Promise<number | undefined> {
  const written = /^Revision\s*:\s*([0-9a-f]{4,8})$/m.exec(await readFile(cpuinfo, 'utf8').catch(() => ''))?.[1]
  return written === undefined ? undefined : Number.parseInt(written, 16)
}

/** One line without control characters. Undefined: empty, missing or unreadable. */
async function line(path: string): Promise<string | undefined> {
  const text = (await readFile(path, 'utf8').catch(() => '')).replace(/\p{Cc}+/gu, ' ').trim()
  return text === '' ? undefined : text.slice(0, longestText)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/** Without the fields that are undefined. */
function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
