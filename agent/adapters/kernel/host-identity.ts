/** Which machine this is, read from files below `root`; starts no process. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HardwareIdentity } from '../../../api/node/hardware-identity.ts'

/** Every mark this machine shows. One that cannot be read, or that many machines share, is left out. */
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

/** Another one after every boot of the machine; undefined where the kernel shows none. */
export async function readBootID(root: string): Promise<string | undefined> {
  return readText(join(root, 'proc/sys/kernel/random/boot_id'))
}

/** What makers leave in when they fill nothing in; the UUID is one whole series of boards' default. */
const fillers =
  /^(to be filled by o\.?e\.?m\.?|default string|(system|chassis|base board) serial number|not (specified|applicable|available)|none|unknown|n\/a|[0-]+|[f-]+|x+|123456789|03000200-0400-0500-0006-000700080009)$/i

function isMark(text: string | undefined): text is string {
  return text !== undefined && !fillers.test(text)
}

/** Trimmed, without the device tree's closing NUL. Undefined when empty, missing or not for us to read. */
async function readText(path: string): Promise<string | undefined> {
  try {
    const text = (await readFile(path, 'utf8')).replaceAll('\0', '').trim()
    return text === '' ? undefined : text
  } catch {
    return undefined // no such file on this kind of machine, or one for root alone
  }
}
