/** What a machine is made of, as its kernel shows it: for people who look after many of them. */
import { decode } from '../decode.ts'
import type { Node } from '../node.ts'
import { bool, type Described, integer, list, object, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

/** On a Node: a MachineInventory as JSON. */
export const inventoryAnnotation = 'bramble.dev/inventory'

const DiskSchema = object({
  /** `mmcblk0` */
  name: text,
  /** `SD`, `MMC`, `NVMe`, or `SCSI`, as which disks at USB and SATA show. */
  kind: text,
  model: optional(text),
  bytes: integer,
  /** Month and year in which it was made, as it reports it: `03/2021`. */
  made: optional(text),
  firmware: optional(text),
})
export type InventoryDisk = Described<typeof DiskSchema>

const LinkSchema = object({ name: text, driver: optional(text), isWireless: bool, megabits: optional(integer) })
export type InventoryLink = Described<typeof LinkSchema>

const MachineInventorySchema = object({
  model: optional(text),
  /** The code of the board in hexadecimal digits, and what it means: `c03115`, `4B 1.5`. */
  revision: optional(text),
  board: optional(text),
  memoryMegabytes: optional(integer),
  maker: optional(text),
  /** The program that starts a Pi 4 or 5, in its EEPROM: the day on which it was built, and its version. */
  bootloaderDate: optional(text),
  bootloader: optional(text),
  /** Greatest current that the power supply of a Pi 5 reports. */
  supplyMilliamps: optional(integer),
  disks: list(DiskSchema),
  links: list(LinkSchema),
})
export type MachineInventory = Described<typeof MachineInventorySchema>

/** Undefined: the node reports none, or it cannot be read. */
export function inventoryOf({ metadata }: Pick<Node, 'metadata'>): MachineInventory | undefined {
  const decoded = decode(MachineInventorySchema, parseJson(metadata.annotations?.[inventoryAnnotation] ?? ''))
  return decoded.ok ? decoded.value : undefined
}
