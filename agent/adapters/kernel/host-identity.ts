/** The hardware identity of the machine, read from files below `root`; starts no process. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HardwareIdentity } from '../../../api/node/hardware-identity.ts'

/** All identifiers of the machine. Unreadable ones, and those that many machines share, are omitted. */
export async function readHardwareIdentity(root: string): Promise<HardwareIdentity> {
  const [treeSerial, cpuinfo, boardSerial, productSerial, systemUUID, machineID, treeModel, vendor, product] =
    await Promise.all(
      [
        'proc/device-tree/serial-number',
        'proc/cpuinfo',
        'sys/class/dmi/id/board_serial',
        'sys/class/dmi/id/product_serial',
        'sys/class/dmi/id/product_uuid',
        'etc/machine-id',
        'proc/device-tree/model',
        'sys/class/dmi/id/sys_vendor',
        'sys/class/dmi/id/product_name',
      ].map((path) => readText(join(root, path))),
    )
  const cpuSerial = /^Serial\s*:\s*(\S+)$/m.exec(cpuinfo ?? '')?.[1]
  const serial = [treeSerial, cpuSerial, boardSerial, productSerial].find(isMark)
  const model = treeModel ?? ([vendor, product].filter(isMark).join(' ') || undefined)
  return {
    ...(serial === undefined ? {} : { boardSerial: serial }),
    ...(isMark(systemUUID) ? { systemUUID } : {}),
    ...(isMark(machineID) && machineID !== 'uninitialized' ? { machineID } : {}),
    ...(model === undefined ? {} : { model }),
  }
}

/** Differs after every boot; undefined where the kernel has none. */
export async function readBootID(root: string): Promise<string | undefined> {
  return readText(join(root, 'proc/sys/kernel/random/boot_id'))
}

/** Placeholders of manufacturers; the UUID is the default of a whole series of boards. */
const fillers =
  /^(to be filled by o\.?e\.?m\.?|default string|(system|chassis|base board) serial number|not (specified|applicable|available)|none|unknown|n\/a|[0-]+|[f-]+|x+|123456789|03000200-0400-0500-0006-000700080009)$/i

function isMark(text: string | undefined): text is string {
  return text !== undefined && !fillers.test(text)
}

/** Trimmed, without the device tree's closing NUL. Undefined when the file is empty, missing or unreadable. */
async function readText(path: string): Promise<string | undefined> {
  try {
    const text = (await readFile(path, 'utf8')).replaceAll('\0', '').trim()
    return text === '' ? undefined : text
  } catch {
    return undefined // no such file on this kind of machine, or one for root alone
  }
}
