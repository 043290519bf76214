/** The inventory of this machine as a row of docs/boards.md. It names no machine: no serial number, address or host name. */
import type { InventoryDisk, InventoryLink, MachineInventory } from '../../../api/node/machine-inventory.ts'
import { byteText } from '../../../api/text/byte-text.ts'

export type ReportedSystem = {
  readonly osImage: string
  readonly kernelVersion: string
  readonly architecture: string
  /** Version of the agent. */
  readonly version: string
}

/** A row of the table, with empty cells for what only people can add. */
export function boardRow(
  inventory: MachineInventory,
  { osImage, kernelVersion, architecture, version }: ReportedSystem,
) {
  const { model, revision, board, bootloaderDate, supplyMilliamps, disks, links } = inventory
  const name = model ?? board ?? 'unknown board'
  const cells = [
    revision === undefined ? name : `${name} (${revision})`,
    `${osImage}, ${kernelVersion}, ${architecture}`,
    bootloaderDate ?? '',
    supplyMilliamps === undefined ? '' : `${supplyMilliamps} mA`,
    disks.map(diskText).join('; '),
    links.map(linkText).join('; '),
    version,
    '',
  ]
  // A bar would end the cell.
  return `| ${cells.map((cell) => cell.replaceAll('|', '/')).join(' | ')} |\n`
}

function diskText({ kind, model, bytes, made }: InventoryDisk): string {
  return [kind, model, byteText(bytes), made].filter((part) => part !== undefined).join(' ')
}

function linkText({ name, driver, isWireless, megabits }: InventoryLink): string {
  const speed = megabits === undefined ? undefined : `${megabits} Mbit/s`
  return [name, driver, isWireless ? 'Wi-Fi' : speed].filter((part) => part !== undefined).join(' ')
}
