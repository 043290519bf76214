/** What is written to the boot partition of a card. Pure. */

import { formatToken } from '../../api/node/bootstrap-token.ts'
import type { JoinFacts } from '../../api/node/join-lines.ts'
import type { CardPackage } from './card-packages.ts'
import { firstBootScript } from './first-boot-script.ts'
import { readOnlyWish, storageScript } from './storage-script.ts'

export type CardJoin = JoinFacts & {
  /** RFC 3339; undefined: the token never expires. */
  readonly expiration: string | undefined
}

export type CardFile = readonly [path: readonly string[], text: string]

/** Path on the boot partition → text. The packages are beside them, in `packagesFolder`. */
export function cardFiles(packages: readonly CardPackage[], isReadOnly = false): readonly CardFile[] {
  const sums = packages.map(({ fileName, sha256 }) => `${sha256}  packages/${fileName}\n`).join('')
  return [
    [['bramble', 'SHA256SUMS'], sums],
    [['bramble', 'first-boot.sh'], firstBootScript],
    ...(isReadOnly ? ([[['bramble', 'storage.sh'], storageScript], wishFile] as const) : []),
  ]
}

/** An image of ours has the packages and both scripts on its root partition. */
export function ownImageFiles(isReadOnly: boolean): readonly CardFile[] {
  return isReadOnly ? [wishFile] : []
}

/** The file with which the storage script makes the root read-only. */
export const wishPath = ['bramble', 'storage'] as const
const wishFile: CardFile = [wishPath, `${readOnlyWish}\n`]

/** Where first-boot.sh looks for them. */
export const packagesFolder = ['bramble', 'packages'] as const

/** The text of bramble.yaml. */
export function cardJoinFile({ server, caHash, token, expiration }: CardJoin, nodeName?: string): string {
  const expires = expiration === undefined ? 'never expires' : `expires at ${expiration}`
  return [
    '# The machine that starts with this card joins with it. Then the agent overwrites and removes this file.',
    `# Everybody with the card can read it. The token ${expires}.`,
    `controller: ${server}`,
    `token: ${formatToken(token)}`,
    `caHash: ${caHash}`,
    ...(nodeName === undefined ? [] : [`nodeName: ${nodeName}`]),
    '',
  ].join('\n')
}
