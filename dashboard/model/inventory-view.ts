/** What a machine is made of, as names and values for its page. */
import { inventoryOf } from '../../api/node/machine-inventory.ts'
import type { Node } from '../../api/node.ts'
import { byteText } from '../../api/text/byte-text.ts'

/** Empty: its agent reports nothing. */
export function inventoryFacts(node: Pick<Node, 'metadata'>): readonly (readonly [name: string, value: string])[] {
  const inventory = inventoryOf(node)
  if (inventory === undefined) return []
  const { model, revision, board, maker, bootloaderDate, supplyMilliamps, disks, links } = inventory
  const words = (...parts: readonly (string | undefined)[]) => parts.filter((part) => part !== undefined).join(', ')
  const facts: readonly (readonly [string, string])[] = [
    ['Board', words(model ?? board, revision, maker)],
    ['Boot loader', bootloaderDate ?? ''],
    ['Supply', supplyMilliamps === undefined ? '' : `${supplyMilliamps} mA`],
    ...disks.map(({ name, kind, model, bytes, made, firmware }): readonly [string, string] => [
      name,
      words(kind, model, byteText(bytes), made && `made ${made}`, firmware && `firmware ${firmware}`),
    ]),
    ...links.map(({ name, driver, isWireless, megabits }): readonly [string, string] => [
      name,
      words(isWireless ? 'Wi-Fi' : 'Ethernet', megabits === undefined ? undefined : `${megabits} Mbit/s`, driver),
    ]),
  ]
  return facts.filter(([, value]) => value !== '')
}
