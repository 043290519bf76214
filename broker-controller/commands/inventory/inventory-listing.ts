/** What the machines of a fleet are made of, as a table, CSV or JSON. */
import { type InventoryDisk, type InventoryLink, inventoryOf } from '../../../api/node/machine-inventory.ts'
import type { Node } from '../../../api/node.ts'
import { byteText } from '../../../api/text/byte-text.ts'
import { printable } from '../printable.ts'
import { textTable } from '../text-table.ts'

/** Nodes in the order of their names. What a node does not report is empty. */
export function inventoryListing(nodes: readonly Node[], format: 'table' | 'csv' | 'json'): string {
  const machines = nodes
    .map(machineOf)
    .sort(({ node: one }, { node: other }) => (one < other ? -1 : one > other ? 1 : 0))
  switch (format) {
    case 'json':
      return `${JSON.stringify({ items: machines }, undefined, 2)}\n`
    case 'csv':
      return [Object.keys(csvColumns), ...machines.map(csvRow)]
        .map((row) => `${row.map(csvCell).join(',')}\r\n`)
        .join('')
    case 'table':
      return textTable([
        ['NODE', 'BOARD', 'MEMORY', 'DISKS', 'NETWORK', 'BOOT LOADER', 'SYSTEM'],
        ...machines.map(tableRow),
      ])
  }
}

type Machine = ReturnType<typeof machineOf>

function machineOf(node: Node) {
  const { osImage, kernelVersion, architecture, kubeletVersion } = node.status?.nodeInfo ?? {}
  const { disks = [], links = [], ...board } = inventoryOf(node) ?? {}
  const system = { osImage, kernelVersion, architecture, kubeletVersion }
  return { node: node.metadata.name ?? '', ...board, disks, links, ...system }
}

function tableRow(machine: Machine): readonly string[] {
  const { node, model, board, memoryMegabytes, disks, links, bootloaderDate, osImage } = machine
  const cells = [
    ...[node, model ?? board, memoryMegabytes === undefined ? '' : byteText(memoryMegabytes * 2 ** 20)],
    ...[disks.map(({ kind, bytes }) => `${kind} ${byteText(bytes)}`).join(', '), links.map(linkText).join(', ')],
    ...[bootloaderDate, osImage],
  ]
  return cells.map((cell) => printable(cell ?? ''))
}

const csvColumns: Readonly<Record<string, (machine: Machine) => string | number | undefined>> = {
  node: ({ node }) => node,
  model: ({ model }) => model,
  revision: ({ revision }) => revision,
  board: ({ board }) => board,
  maker: ({ maker }) => maker,
  memory_megabytes: ({ memoryMegabytes }) => memoryMegabytes,
  bootloader_date: ({ bootloaderDate }) => bootloaderDate,
  bootloader: ({ bootloader }) => bootloader,
  supply_milliamps: ({ supplyMilliamps }) => supplyMilliamps,
  disks: ({ disks }) => disks.map(diskText).join('; '),
  network: ({ links }) => links.map(linkText).join('; '),
  system: ({ osImage }) => osImage,
  kernel: ({ kernelVersion }) => kernelVersion,
  architecture: ({ architecture }) => architecture,
  agent: ({ kubeletVersion }) => kubeletVersion,
}

function csvRow(machine: Machine): readonly string[] {
  return Object.values(csvColumns).map((cell) => printable(String(cell(machine) ?? '')))
}

/** As RFC 4180. A spreadsheet would run a cell that begins like a formula, and nodes write what they like. */
function csvCell(cell: string): string {
  const text = /^[=+\-@]/.test(cell) ? `'${cell}` : cell
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function diskText({ name, kind, model, bytes, made, firmware }: InventoryDisk): string {
  return words(name, kind, model, String(bytes), made && `made ${made}`, firmware && `firmware ${firmware}`)
}

function linkText({ name, driver, isWireless, megabits }: InventoryLink): string {
  return words(
    name,
    isWireless ? 'Wi-Fi' : undefined,
    driver,
    megabits === undefined ? undefined : `${megabits} Mbit/s`,
  )
}

function words(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join(' ')
}
